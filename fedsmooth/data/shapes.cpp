// The arithmetic is + - * / and square roots, each rounded once, so that the bytes are the same on
// every machine; a test pins their hash.
//
// Sizes and contrasts are chosen for certification at sigma = 0.25: a small network learns the
// clean images almost perfectly, has to be trained with noise to know them under noise, and then
// certifies the figures of high contrast far and those of low contrast hardly.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "fedsmooth/base/random.h"
#include "fedsmooth/data/sources.h"

namespace fedsmooth {
namespace {

constexpr int kSide = 32;
constexpr int kSubsamples = 4;  // along each side of a pixel

struct Point {
  float x, y;
};

// What follows is positive inside and negative outside: intersection is min, union max, complement
// -.

float disc(Point p, float radius) { return radius * radius - p.x * p.x - p.y * p.y; }

float box(Point p, float half_width, float half_height) {
  return std::min(half_width - std::abs(p.x), half_height - std::abs(p.y));
}

float triangle(Point p, float inradius) {
  return inradius - std::max(0.8660254f * std::abs(p.x) + 0.5f * p.y, -p.y);
}

/// The points on the inner side of at least four of a pentagram's five lines.
float star(Point p, float inradius) {
  constexpr Point kNormals[] = {{0.0f, 1.0f},
                                {0.95105652f, 0.30901699f},
                                {0.58778525f, -0.80901699f},
                                {-0.58778525f, -0.80901699f},
                                {-0.95105652f, 0.30901699f}};
  float smallest = std::numeric_limits<float>::infinity(), second = smallest;
  for (const Point& normal : kNormals) {
    const float inside = inradius - normal.x * p.x - normal.y * p.y;
    second = std::min(second, std::max(smallest, inside));
    smallest = std::min(smallest, inside);
  }
  return second;
}

// Areas are similar, so that the amount of a colour does not give the class away.
float inside_disc(Point p) { return disc(p, 0.78f); }
float inside_ring(Point p) { return std::min(disc(p, 0.95f), -disc(p, 0.55f)); }
float inside_square(Point p) { return box(p, 0.7f, 0.7f); }
float inside_frame(Point p) { return std::min(box(p, 0.85f, 0.85f), -box(p, 0.5f, 0.5f)); }
float inside_triangle(Point p) { return triangle(p, 0.55f); }
float inside_cross(Point p) { return std::max(box(p, 0.95f, 0.3f), box(p, 0.3f, 0.95f)); }
float inside_star(Point p) { return star(p, 0.37f); }
float inside_crescent(Point p) {
  return std::min(disc({p.x + 0.2f, p.y}, 1.0f), -disc({p.x - 0.3f, p.y}, 0.8f));
}
float inside_stripes(Point p) {
  return std::min(box(p, 0.85f, 0.85f), std::abs(std::abs(p.x) - 0.34f) - 0.17f);
}
float inside_checker(Point p) {
  return std::min(box(p, 0.9f, 0.9f), (std::abs(p.x) - 0.3f) * (std::abs(p.y) - 0.3f));
}

/// The random numbers of one image, in order.
class ImageDraws {
 public:
  explicit ImageDraws(Stream stream) : stream_(stream) {}

  float uniform(float low, float high) {
    if (next_ == buffer_.size()) {
      fill_uniform(stream_, sample_++, buffer_.data(), std::ssize(buffer_));
      next_ = 0;
    }
    return low + (high - low) * buffer_[next_++];
  }

  /// Uniform on the unit sphere: points of the cube until one is in the ball (no sine, no cosine).
  template <size_t N>
  std::array<float, N> direction() {
    for (;;) {
      std::array<float, N> v;
      for (float& component : v) component = uniform(-1.0f, 1.0f);
      float norm2 = 0.0f;
      for (const float component : v) norm2 += component * component;
      if (norm2 > 1.0f || norm2 < 0.01f) continue;
      for (float& component : v) component /= std::sqrt(norm2);
      return v;
    }
  }

 private:
  Stream stream_;
  uint32_t sample_ = 0;
  std::array<float, 128> buffer_;
  size_t next_ = buffer_.size();
};

using Colour = std::array<float, 3>;

/// A colour that varies over the image: a slope and clouds, drawn on a coarse grid and
/// interpolated.
class Surface {
 public:
  Surface(const Colour& colour, ImageDraws& draws) {
    const auto [right, down] = draws.direction<2>();
    const float slope = draws.uniform(0.0f, 0.12f);
    for (int row = 0; row < kNodes; ++row) {
      for (int column = 0; column < kNodes; ++column) {
        const float x = 2.0f * column / (kNodes - 1) - 1.0f;
        const float y = 2.0f * row / (kNodes - 1) - 1.0f;
        const float light = slope * (right * x + down * y) + draws.uniform(-0.24f, 0.24f);
        for (int c = 0; c < 3; ++c) {
          nodes_[row][column][c] = colour[c] + light + draws.uniform(-0.04f, 0.04f);
        }
      }
    }
  }

  float at(int row, int column, int channel) const {
    const int top = row / kCell, left = column / kCell;
    const float down = (row % kCell + 0.5f) / kCell, right = (column % kCell + 0.5f) / kCell;
    const auto mix = [](float a, float b, float share) { return a + share * (b - a); };
    return mix(mix(nodes_[top][left][channel], nodes_[top][left + 1][channel], right),
               mix(nodes_[top + 1][left][channel], nodes_[top + 1][left + 1][channel], right),
               down);
  }

 private:
  static constexpr int kCell = 4;  // pixels from node to node
  static constexpr int kNodes = kSide / kCell + 1;
  Colour nodes_[kNodes][kNodes];
};

/// From pixels to the frame of the figure: x is along . (pixel - centre), y is across . (same).
struct Pose {
  Point centre, along, across;
};

Pose draw_pose(ImageDraws& draws) {
  const float length = draws.uniform(8.0f, 13.0f);  // pixels to one unit of the figure
  const float width = length * draws.uniform(0.8f, 1.0f);
  const float middle = 0.5f * kSide;
  const float room = middle - 1.0f - length;
  const float x = middle + draws.uniform(-room, room);
  const float y = middle + draws.uniform(-room, room);
  const auto [cosine, sine] = draws.direction<2>();
  return {{x, y}, {cosine / length, sine / length}, {-sine / width, cosine / width}};
}

/// The share of a pixel that a figure covers. A template, so that the compiler sees all points of a
/// pixel at once: this is where the time goes.
template <float (*kInside)(Point)>
float coverage(const Pose& pose, int row, int column) {
  const auto& [centre, along, across] = pose;
  int inside = 0;
  for (int i = 0; i < kSubsamples * kSubsamples; ++i) {
    const float x = column + (i % kSubsamples + 0.5f) / kSubsamples - centre.x;
    const float y = row + (i / kSubsamples + 0.5f) / kSubsamples - centre.y;
    const Point p = {along.x * x + along.y * y, across.x * x + across.y * y};
    inside += kInside(p) > 0.0f ? 1 : 0;
  }
  return static_cast<float>(inside) / (kSubsamples * kSubsamples);
}

struct Figure {
  const char* name;
  float (*coverage)(const Pose& pose, int row, int column);
};

constexpr Figure kFigures[] = {
    {"disc", coverage<inside_disc>},         {"ring", coverage<inside_ring>},
    {"square", coverage<inside_square>},     {"frame", coverage<inside_frame>},
    {"triangle", coverage<inside_triangle>}, {"cross", coverage<inside_cross>},
    {"star", coverage<inside_star>},         {"crescent", coverage<inside_crescent>},
    {"stripes", coverage<inside_stripes>},   {"checker", coverage<inside_checker>},
};
constexpr int64_t kClasses = std::size(kFigures);

/// Writes one image, uint8 [3, 32, 32].
void render(const Figure& figure, ImageDraws draws, uint8_t* image) {
  const Pose pose = draw_pose(draws);
  Colour behind, front;
  for (float& channel : behind) channel = draws.uniform(0.3f, 0.7f);
  const Colour hue = draws.direction<3>();
  const float contrast = draws.uniform(0.2f, 1.1f);
  for (int c = 0; c < 3; ++c) front[c] = behind[c] + contrast * hue[c];
  const Surface background(behind, draws);
  const Surface foreground(front, draws);

  for (int row = 0; row < kSide; ++row) {
    for (int column = 0; column < kSide; ++column) {
      const float share = figure.coverage(pose, row, column);
      for (int c = 0; c < 3; ++c) {
        const float value =
            (1.0f - share) * background.at(row, column, c) + share * foreground.at(row, column, c);
        image[(c * kSide + row) * kSide + column] =
            static_cast<uint8_t>(std::clamp(256.0f * value, 0.0f, 255.0f));
      }
    }
  }
}

/// The labels of images 10 `group` to 10 `group` + 9: balanced, yet every Nth image is a
/// fair sample.
std::array<int64_t, kClasses> shuffled_classes(Key key, int64_t group) {
  uint32_t words[kClasses];
  // The client counter is free here: with 1 it names streams that no image uses.
  fill_words({key, static_cast<uint32_t>(group), 1}, 0, words, kClasses);
  std::array<int64_t, kClasses> classes = {};
  for (int64_t i = 0; i < kClasses; ++i) {
    const auto other = static_cast<int64_t>(words[i] % (i + 1));
    classes[i] = classes[other];
    classes[other] = i;
  }
  return classes;
}

}  // namespace

Dataset make_shapes(Split split, int64_t count, uint64_t seed) {
  const Key key = make_key(seed, Purpose::kShapes, split == Split::kTrain ? 0 : 1);
  Dataset data{
      Array({count, 3, kSide, kSide}, Array::Type::kByte), std::vector<int64_t>(count), {}};
  for (const Figure& figure : kFigures) data.class_names.emplace_back(figure.name);
  uint8_t* images = data.images.bytes();
  int64_t* labels = data.labels.data();
  for (int64_t i = 0; i < count; ++i) {
    labels[i] = shuffled_classes(key, i / kClasses)[i % kClasses];
    const ImageDraws draws({key, static_cast<uint32_t>(i)});
    render(kFigures[labels[i]], draws, images + i * 3 * kSide * kSide);
  }
  return data;
}

}  // namespace fedsmooth
