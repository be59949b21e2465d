#include "fedsmooth/data/augment.h"

namespace fedsmooth {
namespace {

constexpr int64_t kPadding = 4;

// Where an image's pixel (y, x) comes from, before the flip: (y + down, x + right).
struct Move {
  int64_t down, right;
  bool flipped;
};

Move draw_move(Stream stream, uint32_t sample) {
  uint32_t words[3];
  fill_words(stream, sample, words, 3);
  return {words[0] % (2 * kPadding + 1) - kPadding, words[1] % (2 * kPadding + 1) - kPadding,
          words[2] % 2 != 0};
}

void move_plane(const float* from, int64_t height, int64_t width, const Move& move, float* to) {
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x, ++to) {
      const int64_t row = y + move.down;
      const int64_t column = (move.flipped ? width - 1 - x : x) + move.right;
      const bool inside = 0 <= row && row < height && 0 <= column && column < width;
      *to = inside ? from[row * width + column] : 0.0f;
    }
  }
}

}  // namespace

Array augment(const Array& images, Stream stream) {
  const int64_t height = images.size(2), width = images.size(3), area = height * width;
  Array out(images.sizes());
  for (int64_t i = 0; i < images.size(0); ++i) {
    const Move move = draw_move(stream, static_cast<uint32_t>(i));
    for (int64_t plane = i * images.size(1); plane < (i + 1) * images.size(1); ++plane) {
      move_plane(images.floats() + plane * area, height, width, move, out.floats() + plane * area);
    }
  }
  return out;
}

}  // namespace fedsmooth
