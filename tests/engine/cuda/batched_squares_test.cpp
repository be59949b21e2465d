// Products of maps that pool squares of pixels themselves, as Hopper's do.
#ifdef FEDSMOOTH_CUDA

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/engine/cuda/products.h"

namespace fedsmooth {
namespace {

// Indices in maps [client, pixel, row, channel]: where the four pixels of a square lie that one
// pixel of a smaller map stands for.
struct Squares {
  int64_t height, width, row_values;  // of the smaller map; a pixel's values

  int64_t place(int64_t of, int64_t corner) const {
    const int64_t client = of / (height * width * row_values), value = of % row_values;
    const int64_t y = of / (width * row_values) % height, x = of / row_values % width;
    const int64_t row = 2 * y + corner / 2, column = 2 * x + corner % 2;
    return ((client * 2 * height + row) * 2 * width + column) * row_values + value;
  }
};

class BatchedSquaresTest : public GpuTest, public testing::WithParamInterface<int> {};

// Maps whose squares are pooled on their way out, and back: to the bit what the map itself gives.
TEST_P(BatchedSquaresTest, MaximaOverSquares) {
  const int rows = GetParam();
  const Path& path = kBest;
  const std::vector<Product> products = products_of("alexnet");
  for (size_t i = 0; i + 1 < products.size(); ++i) {
    const Product& stage = products[i];
    const Tiling tiling = path.tiling(Side::kForward, stage.by_output);
    if (!stage.pools_squares || !tiling.hopper) continue;
    const int64_t c = stage.in.channels, k = stage.out.channels;
    const int64_t height = stage.out.height, width = stage.out.width;
    const PairTable pairs(stage.by_output, squares(stage.out), tiling);
    const Matrices x = draw_normal(stage.in.pixels(), rows, c, 1, path);
    const Matrices w = draw_normal(stage.taps, c, k, 2, path);
    const DeviceValues left(x.values, path.type()), kernel(w.values, path.type());
    const int64_t count = kClients * height * width / 4 * rows * k;
    const DeviceValues map = DeviceValues::zeros(4 * count, path.type());
    const DeviceValues maxima = DeviceValues::zeros(count, path.type());
    const DeviceValues choice = DeviceValues::zeros(count, NumberType::kByte);
    MapProduct p = product_of(stage, false, rows, left, kernel, pairs, map);
    check_cuda(multiply_maps(path.precision, p, nullptr), "multiply_maps");
    p.out = maxima.data();
    p.pool_columns = stage.out.width / 2;
    p.choice = static_cast<uint8_t*>(choice.data());
    check_cuda(multiply_maps(path.precision, p, nullptr), "multiply_maps");

    const Squares four{height / 2, width / 2, rows * k};
    const std::vector<double> values = map.read(), found = maxima.read(), chosen = choice.read();
    int64_t wrong_maxima = 0, wrong_passes = 0, wrong_choices = 0, late_choices = 0;
    for (int64_t at = 0; at < count; ++at) {
      double largest = values[four.place(at, 0)];
      for (int64_t i = 1; i < 4; ++i) largest = std::max(largest, values[four.place(at, i)]);
      wrong_maxima += found[at] != largest;
      const auto pixel = static_cast<int64_t>(chosen[at]);
      const bool passes = pixel != kNoChoice;
      wrong_passes += passes != (!stage.relu || largest > 0);
      if (!passes) continue;
      wrong_choices += pixel > 3 || values[four.place(at, pixel)] != largest;
      // The first of equal ones.
      for (int64_t i = 0; i < std::min<int64_t>(pixel, 3); ++i) {
        late_choices += values[four.place(at, i)] == largest;
      }
    }
    EXPECT_EQ(wrong_maxima, 0);
    EXPECT_EQ(wrong_passes, 0);
    EXPECT_EQ(wrong_choices, 0);
    EXPECT_EQ(late_choices, 0);
  }
}

// A gradient of maxima, spread over the squares.
TEST_P(BatchedSquaresTest, GradientOverSquares) {
  const int rows = GetParam();
  const Path& path = kBest;
  const std::vector<Product> products = products_of("alexnet");
  for (size_t i = 1; i < products.size(); ++i) {
    const Product& stage = products[i];
    const Tiling tiling = path.tiling(Side::kMapGradient, stage.by_input);
    if (!products[i - 1].pools_squares || !tiling.hopper) continue;
    const int64_t c = stage.in.channels, k = stage.out.channels;
    const int64_t height = stage.in.height, width = stage.in.width;
    const PairTable pairs(stage.by_input, squares(stage.in), tiling);
    const Matrices dy = draw_normal(stage.out.pixels(), rows, k, 1, path);
    const Matrices w = draw_normal(stage.taps, c, k, 2, path);
    const DeviceValues left(dy.values, path.type()), kernel(w.values, path.type());
    const int64_t count = kClients * height * width * rows * c;
    std::vector<double> chosen(count);
    for (int64_t i = 0; i < count; ++i) chosen[i] = static_cast<double>(i % 5);
    const DeviceValues choice(chosen, NumberType::kByte);
    const DeviceValues plain = DeviceValues::zeros(count, path.type());
    const DeviceValues spread = DeviceValues::zeros(4 * count, path.type());
    MapProduct p = product_of(stage, true, rows, left, kernel, pairs, plain);
    check_cuda(multiply_maps(path.precision, p, nullptr), "multiply_maps");
    p.out = spread.data();
    p.pool_columns = stage.in.width;
    p.choice = static_cast<uint8_t*>(choice.data());
    check_cuda(multiply_maps(path.precision, p, nullptr), "multiply_maps");

    const Squares four{height, width, rows * c};
    const std::vector<double> gradient = plain.read(), found = spread.read();
    int64_t wrong = 0;
    for (int64_t at = 0; at < count; ++at) {
      for (int64_t i = 0; i < 4; ++i) {
        wrong += found[four.place(at, i)] != (chosen[at] == i ? gradient[at] : 0);
      }
    }
    EXPECT_EQ(wrong, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, BatchedSquaresTest, testing::Values(64, 128));

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(BatchedSquaresTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
