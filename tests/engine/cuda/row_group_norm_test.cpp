// Group norm of row maps against the reference in double.
#ifdef FEDSMOOTH_CUDA

#include "fedsmooth/engine/cuda/kernels/rows/row_group_norm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fedsmooth/engine/reference/norms.h"
#include "tests/arrays.h"
#include "tests/engine/cuda/gpu.h"

namespace fedsmooth {
namespace {

using reference::Map;
using Doubles = std::vector<double>;

struct NormCase {
  int clients, rows, height, width, channels, filled, groups;
};

std::ostream& operator<<(std::ostream& to, const NormCase& s) {
  return to << s.clients << "x" << s.rows << " of " << s.height << "x" << s.width << "x"
            << s.channels << " (" << s.filled << ") in " << s.groups << " groups";
}

// Those of ResNets, odd sizes, channels that fill up, one group, groups of one channel, one pixel;
// more than 64 channels.
const std::vector<NormCase> kShapes = {
    {1, 1, 32, 32, 16, 16, 8},      {2, 3, 16, 16, 32, 32, 8},  {3, 7, 8, 8, 64, 64, 8},
    {2, 2, 15, 13, 7, 16, 7},       {1, 5, 5, 3, 40, 64, 4},    {1, 3, 9, 7, 12, 16, 1},
    {2, 2, 1, 1, 20, 32, 5},        {1, 2, 33, 47, 64, 64, 64}, {2, 3, 8, 8, 96, 96, 32},
    {1, 2, 16, 16, 160, 160, 32},   {2, 2, 7, 5, 500, 512, 20}, {1, 3, 4, 4, 512, 512, 1},
    {1, 2, 1, 1, 2048, 2048, 2048}, {1, 1, 16, 15, 70, 96, 7},  {2, 1, 3, 3, 2048, 2048, 16},
};

// Rounding of float32, and of bfloat16 relative to the value. A value goes through at most some 200
// additions on its way into a group's sum.
constexpr double kAdditions = 200, kFullStep = 0x1p-23, kHalfStep = 0x1p-8;

class RowGroupNormTest : public GpuTest,
                         public testing::WithParamInterface<std::tuple<NormCase, Precision>> {
 protected:
  RowGroupNormTest() : shape_(std::get<0>(GetParam())), precision_(std::get<1>(GetParam())) {
    map_ = {shape_.height, shape_.width, shape_.filled};
    groups_ = {shape_.groups, shape_.channels / shape_.groups};
    x_ = random_map(1);
    add_ = random_map(2);
    dy_ = random_map(3);
    // A client's vector: scales, then biases, zeros where channels fill up.
    const Array drawn = uniform({int64_t{shape_.clients} * 2 * shape_.filled}, 4);
    for (int64_t i = 0; i < drawn.count(); ++i) {
      const bool real = i % shape_.filled < shape_.channels;
      vectors_.push_back(real ? drawn.floats()[i] + 0.5f : 0.0);
    }
  }

  bool half() const { return precision_ == Precision::kBfloat16; }
  NumberType type() const { return half() ? NumberType::kBfloat16 : NumberType::kFloat; }
  int64_t rows() const { return int64_t{shape_.clients} * shape_.rows; }

  Doubles random_map(uint64_t seed) const {
    const Array drawn = uniform({rows() * map_.row_size()}, seed);
    Doubles values;
    for (int64_t i = 0; i < drawn.count(); ++i) {
      const float v = drawn.floats()[i] - 0.3f;
      const bool real = i % shape_.filled < shape_.channels;
      values.push_back(!real ? 0.0f : half() ? from_bfloat16(to_bfloat16(v)) : v);
    }
    return values;
  }

  // Where the reference's map of a client has what row maps have at `at`; -1: nowhere.
  int64_t place_of(int64_t at) const {
    const int64_t channel = at % shape_.filled, pixel = at / shape_.filled % map_.pixels();
    const int64_t row = at / map_.row_size() % shape_.rows;
    if (channel >= shape_.channels) return -1;
    return (row * shape_.channels + channel) * map_.pixels() + pixel;
  }
  int client_of(int64_t at) const { return static_cast<int>(at / (shape_.rows * map_.row_size())); }

  Map<double> client_map(const Doubles& values, int client) const {
    Map<double> map(shape_.rows, {shape_.channels, shape_.height, shape_.width});
    const int64_t size = shape_.rows * map_.row_size();
    for (int64_t at = client * size; at < (client + 1) * size; ++at) {
      if (place_of(at) >= 0) map.values[place_of(at)] = values[at];
    }
    return map;
  }

  Doubles tensor(int client, int which) const {
    const auto first = vectors_.begin() + (2 * client + which) * shape_.filled;
    return {first, first + shape_.channels};
  }

  struct Expected {
    std::vector<Map<double>> y;  // before the sum and the ReLU
    std::vector<reference::NormGradients<double>> gradients;
    std::vector<reference::Statistics> statistics;
  };
  Expected expected() const {
    Expected found;
    for (int client = 0; client < shape_.clients; ++client) {
      const Map<double> x = client_map(x_, client);
      const Doubles weight = tensor(client, 0);
      const auto statistics = reference::group_statistics(x, shape_.groups);
      found.y.push_back(
          reference::group_norm(x, shape_.groups, statistics, weight, tensor(client, 1)));
      found.gradients.push_back(reference::group_norm_back(x, client_map(dy_, client),
                                                           shape_.groups, statistics, weight));
      found.statistics.push_back(statistics);
    }
    return found;
  }

  // 1 / sqrt(variance + epsilon) of the group at `at`.
  double inverse_at(const Expected& e, int64_t at) const {
    const int64_t row = at / map_.row_size() % shape_.rows;
    const int64_t group = at % shape_.filled / groups_.channels;
    return e.statistics[client_of(at)].scale[row * shape_.groups + group];
  }

  NormWeights weights(const DeviceValues& vectors) const {
    NormWeights w;
    w.vectors = vectors.floats();
    w.size = 2 * shape_.filled;
    w.bias = shape_.filled;
    return w;
  }

  GroupNorm norm(const DeviceValues& vectors) const {
    GroupNorm n;
    n.clients = shape_.clients;
    n.rows = shape_.rows;
    n.map = map_;
    n.groups = groups_;
    n.weights = weights(vectors);
    return n;
  }

  NormCase shape_;
  Precision precision_;
  MapShape map_;
  ChannelGroups groups_;
  Doubles x_, add_, dy_, vectors_;
};

TEST_P(RowGroupNormTest, ForwardWithShortcutAndRelu) {
  const DeviceValues x(x_, type()), add(add_, type()), vectors(vectors_, NumberType::kFloat),
      y(Doubles(x_.size(), NAN), type());
  GroupNorm n = norm(vectors);
  n.x = x.data();
  n.add = add.data();
  n.relu = true;
  n.y = y.data();
  check_cuda(apply_group_norm(precision_, n, nullptr), "apply_group_norm");
  const Doubles found = y.read();
  const Expected e = expected();
  for (int64_t at = 0; at < std::ssize(found); ++at) {
    if (place_of(at) < 0) {
      ASSERT_EQ(found[at], 0) << at;
      continue;
    }
    const double value = std::max(e.y[client_of(at)].values[place_of(at)] + add_[at], 0.0);
    // Of x - mean, which is less than 1, and of its factor; of the bias and the shortcut.
    const double size = 1.5 * inverse_at(e, at) + 3;
    const double bound = kAdditions * kFullStep * size + (half() ? kHalfStep * value : 0);
    ASSERT_NEAR(found[at], value, bound) << at;
  }
  // Without either, in place.
  n.add = nullptr;
  n.relu = false;
  n.y = x.data();
  check_cuda(apply_group_norm(precision_, n, nullptr), "apply_group_norm");
  const Doubles plain = x.read();
  for (int64_t at = 0; at < std::ssize(plain); ++at) {
    const double value = place_of(at) < 0 ? 0 : e.y[client_of(at)].values[place_of(at)];
    const double size = place_of(at) < 0 ? 0 : 1.5 * inverse_at(e, at) + 3;
    const double bound = kAdditions * kFullStep * size + (half() ? kHalfStep * std::abs(value) : 0);
    ASSERT_NEAR(plain[at], value, bound) << at;
  }
}

TEST_P(RowGroupNormTest, Gradients) {
  const DeviceValues x(x_, type()), dy(dy_, type()), vectors(vectors_, NumberType::kFloat),
      y(Doubles(x_.size(), NAN), type()), dx(Doubles(x_.size(), NAN), type());
  const DeviceValues sums(Doubles(rows() * 2 * shape_.filled, NAN), NumberType::kFloat);
  const DeviceValues gradients(Doubles(vectors_.size(), NAN), NumberType::kFloat);
  const DeviceArray<GroupValues> values(rows() * shape_.filled);
  GroupNorm n = norm(vectors);
  n.x = x.data();
  n.values = values.data();
  n.y = y.data();
  check_cuda(apply_group_norm(precision_, n, nullptr), "apply_group_norm");
  GroupNormGradient g;
  g.clients = shape_.clients;
  g.rows = shape_.rows;
  g.map = map_;
  g.groups = groups_;
  g.x = x.data();
  g.dy = dy.data();
  g.weights = weights(vectors);
  g.values = values.data();
  g.sums = sums.floats();
  g.dx = dx.data();
  check_cuda(differentiate_group_norm(precision_, g, nullptr), "differentiate_group_norm");
  const Doubles found = dx.read();
  // With a mask, added to another gradient in place.
  const DeviceValues sum(add_, type());
  g.add = g.dx = sum.data();
  g.mask = true;
  check_cuda(differentiate_group_norm(precision_, g, nullptr), "differentiate_group_norm");
  const Doubles masked = sum.read();
  NormGradient of_weights;
  of_weights.clients = shape_.clients;
  of_weights.rows = of_weights.parts = shape_.rows;
  of_weights.map = map_;
  of_weights.x = x.data();
  of_weights.sums = sums.floats();
  of_weights.weights = weights(vectors);
  of_weights.gradients = gradients.floats();
  check_cuda(add_norm_gradients(of_weights, nullptr), "add_norm_gradients");

  const Expected e = expected();
  double largest = 0;  // of what the norm divides by
  for (int64_t at = 0; at < std::ssize(found); ++at) {
    if (place_of(at) < 0) {
      ASSERT_EQ(found[at], 0) << at;
      ASSERT_EQ(masked[at], 0) << at;
      continue;
    }
    const double value = e.gradients[client_of(at)].x.values[place_of(at)];
    const double inverse = inverse_at(e, at);
    largest = std::max(largest, inverse);
    // n is up to `inverse`, weight dy and its means are less than 1.5.
    const double size = 1.5 * inverse * (2 + inverse * inverse);
    const double bound = kAdditions * kFullStep * size,
                 with_add = x_[at] > 0 ? value + add_[at] : 0;
    ASSERT_NEAR(found[at], value, bound + (half() ? kHalfStep * std::abs(value) : 0)) << at;
    ASSERT_NEAR(masked[at], with_add, bound + (half() ? kHalfStep * std::abs(with_add) : 0)) << at;
  }
  const Doubles of_vectors = gradients.read();
  const double terms = shape_.rows * map_.pixels();
  for (int client = 0; client < shape_.clients; ++client) {
    for (int c = 0; c < shape_.channels; ++c) {
      const double bound = kAdditions * kFullStep * terms;
      const int64_t scale = int64_t{2} * client * shape_.filled + c;
      ASSERT_NEAR(of_vectors[scale], e.gradients[client].weight[c], 2 * largest * bound) << c;
      ASSERT_NEAR(of_vectors[scale + shape_.filled], e.gradients[client].bias[c], bound) << c;
    }
  }
}

TEST_P(RowGroupNormTest, ARowsBitsDependOnNothingElse) {
  const DeviceValues x(x_, type()), dy(dy_, type()), vectors(vectors_, NumberType::kFloat);
  const auto run = [&](int clients, int rows, int64_t first_row, int client) {
    const int64_t count = int64_t{clients} * rows;
    const int64_t offset = first_row * map_.row_size() * (half() ? 2 : 4);
    const DeviceValues y(Doubles(count * map_.row_size(), NAN), type()),
        dx(Doubles(count * map_.row_size(), NAN), type());
    const DeviceArray<GroupValues> values(count * shape_.filled);
    GroupNorm n = norm(vectors);
    n.clients = clients;
    n.rows = rows;
    n.weights.vectors += client * n.weights.size;
    n.x = static_cast<const uint8_t*>(x.data()) + offset;
    n.values = values.data();
    n.y = y.data();
    check_cuda(apply_group_norm(precision_, n, nullptr), "apply_group_norm");
    GroupNormGradient g{clients,   rows,          map_,
                        groups_,   n.x,           static_cast<const uint8_t*>(dy.data()) + offset,
                        n.weights, values.data(), nullptr,
                        dx.data()};
    check_cuda(differentiate_group_norm(precision_, g, nullptr), "differentiate_group_norm");
    Doubles both = y.read();
    const Doubles gradient = dx.read();
    both.insert(both.end(), gradient.begin(), gradient.end());
    return both;
  };
  const Doubles together = run(shape_.clients, shape_.rows, 0, 0);
  for (int64_t row = 0; row < rows(); ++row) {
    const Doubles alone = run(1, 1, row, static_cast<int>(row / shape_.rows));
    const int64_t size = map_.row_size();
    for (const int64_t kind : {0, 1}) {
      const auto from = together.begin() + (kind * rows() + row) * size;
      EXPECT_TRUE(std::equal(from, from + size, alone.begin() + kind * size)) << row;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, RowGroupNormTest,
                         testing::Combine(testing::ValuesIn(kShapes),
                                          testing::Values(Precision::kBfloat16,
                                                          Precision::kFloat32)));

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(RowGroupNormTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
