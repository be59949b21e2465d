#include "fedsmooth/data/augment.h"

#include <gtest/gtest.h>

#include <map>

namespace fedsmooth {
namespace {

// Pixel (y, x) of channel c is worth 10,000 c + 100 y + x + 1, so that a value shows its position.
Array numbered(int64_t images, int64_t side) {
  Array made({images, 2, side, side});
  float* value = made.floats();
  for (int64_t i = 0; i < images; ++i) {
    for (int64_t c = 0; c < 2; ++c) {
      for (int64_t y = 0; y < side; ++y) {
        for (int64_t x = 0; x < side; ++x) {
          *value++ = static_cast<float>(10'000 * c + 100 * y + x + 1);
        }
      }
    }
  }
  return made;
}

struct Move {
  int64_t down, right;
  bool flipped;
  auto operator<=>(const Move&) const = default;
};

// The move that explains the whole image; an image that none explains fails the test.
Move find_move(const float* image, int64_t side) {
  for (int64_t down = -4; down <= 4; ++down) {
    for (int64_t right = -4; right <= 4; ++right) {
      for (const bool flipped : {false, true}) {
        bool fits = true;
        for (int64_t c = 0; c < 2 && fits; ++c) {
          for (int64_t y = 0; y < side && fits; ++y) {
            for (int64_t x = 0; x < side && fits; ++x) {
              const int64_t from_y = y + down, from_x = (flipped ? side - 1 - x : x) + right;
              const bool inside = 0 <= from_y && from_y < side && 0 <= from_x && from_x < side;
              const auto expected =
                  inside ? static_cast<float>(10'000 * c + 100 * from_y + from_x + 1) : 0.0f;
              fits = image[(c * side + y) * side + x] == expected;
            }
          }
        }
        if (fits) return {down, right, flipped};
      }
    }
  }
  ADD_FAILURE() << "neither moved nor flipped";
  return {};
}

TEST(AugmentTest, ImagesAreMovedByUpToFourPixelsAndFlipped) {
  constexpr int64_t kImages = 4000, kSide = 9;
  const Array out = augment(numbered(kImages, kSide), {make_key(1, Purpose::kAugment)});
  std::map<int64_t, int64_t> down, right;
  int64_t flipped = 0;
  for (int64_t i = 0; i < kImages; ++i) {
    const Move move = find_move(out.floats() + i * 2 * kSide * kSide, kSide);
    ++down[move.down];
    ++right[move.right];
    flipped += move.flipped;
  }
  // Each of nine positions 444 times, each side half of the time, within five deviations.
  EXPECT_EQ(down.size(), 9U);
  EXPECT_EQ(right.size(), 9U);
  for (const auto& counts : {down, right}) {
    for (const auto& [position, count] : counts) EXPECT_NEAR(count, 444, 5 * 21) << position;
  }
  EXPECT_NEAR(static_cast<double>(flipped), 2000, 5 * 32);
}

TEST(AugmentTest, RowsHaveTheirOwnSamples) {
  const Stream stream{make_key(1, Purpose::kAugment), 3, 5};
  const Array all = augment(numbered(20, 8), stream), few = augment(numbered(5, 8), stream);
  EXPECT_TRUE(same_bits(all.part(0, 5), few));
  EXPECT_FALSE(same_bits(augment(numbered(5, 8), {stream.key, 4, 5}), few));
}

}  // namespace
}  // namespace fedsmooth
