#include "fedsmooth/engine/cpu/toeplitz.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fedsmooth/engine/reference/convolutions.h"
#include "tests/arrays.h"

namespace fedsmooth {
namespace {

Array whole_numbers(const Sizes& sizes, int64_t seed) {
  Array out(sizes);
  for (int64_t i = 0; i < out.count(); ++i) out.floats()[i] = static_cast<float>(i * seed % 11 - 5);
  return out;
}

// [B, C, H, W] to [B, H, W, C].
Array channels_last(const Array& x) {
  const int64_t channels = x.size(1), area = x.size(2) * x.size(3);
  Array out({x.size(0), x.size(2), x.size(3), channels});
  for (int64_t i = 0; i < x.count(); ++i) {
    const int64_t image = i / (channels * area), c = i / area % channels, pixel = i % area;
    out.floats()[(image * area + pixel) * channels + c] = x.floats()[i];
  }
  return out;
}
// Back.
Array channels_first(const Array& x) {
  const int64_t channels = x.size(3), area = x.size(1) * x.size(2);
  return channels_last(x.with_sizes({x.size(0), area, channels, 1}))
      .with_sizes({x.size(0), channels, x.size(1), x.size(2)});
}

// Convolution and pooling in plain loops. Sums of whole numbers are exact.
Array convolve(const Layer& conv, const Array& x, const Array& kernel, const Array& bias) {
  const Shape in = {x.size(1), x.size(2), x.size(3)};
  reference::Map<float> map(x.size(0), in);
  map.values = values_of(x);
  const reference::Map<float> y = reference::convolve(
      conv, map, values_of(kernel), bias.defined() ? values_of(bias) : std::vector<float>{},
      shape_after(conv, in));
  return Array::of({y.images, y.shape[0], y.shape[1], y.shape[2]}, y.values);
}
Array relu(const Array& x) {
  return each(x, [](float v) { return std::max(v, 0.0f); });
}
Array pool(const Array& x) {
  const int64_t height = x.size(2) / 2, width = x.size(3) / 2;
  Array out({x.size(0), x.size(1), height, width});
  for (int64_t i = 0; i < out.count(); ++i) {
    const int64_t plane = i / (height * width), row = i / width % height, column = i % width;
    const float* square = x.floats() + (plane * x.size(2) + 2 * row) * x.size(3) + 2 * column;
    out.floats()[i] = std::max(std::max(square[0], square[1]),
                               std::max(square[x.size(3)], square[x.size(3) + 1]));
  }
  return out;
}

// y_i takes k_d of x_j exactly if j = i + d - skipped.
template <class S>
void expect_convolution() {
  constexpr SchemeSize size = S::kSize;
  for (int64_t i = 0; i < size.outputs; ++i) {
    for (int64_t j = 0; j < size.window; ++j) {
      for (int64_t d = 0; d < size.taps; ++d) {
        double sum = 0;
        for (int64_t p = 0; p < size.products; ++p) {
          sum += S::kOutputs[i][p] * S::kKernel[p][d] * S::kInputs[p][j];
        }
        EXPECT_NEAR(sum, j == i + d - size.skipped ? 1 : 0, 1e-14) << i << " " << j << " " << d;
      }
    }
  }
}

TEST(ToeplitzTest, SchemesAreConvolutions) {
  expect_convolution<Whole2>();
  expect_convolution<Whole4>();
  expect_convolution<Tile4>();
}

// [rows, C] times columns first .. first + width - 1 of [C, K].
void multiply(const Array& left, const Array& right, int64_t first, int64_t width, float* out) {
  for (int64_t r = 0; r < left.size(0); ++r) {
    for (int64_t k = 0; k < width; ++k) {
      double sum = 0;
      for (int64_t c = 0; c < left.size(1); ++c) {
        sum += static_cast<double>(left[r].floats()[c]) * right[c].floats()[first + k];
      }
      out[r * width + k] = static_cast<float>(sum);
    }
  }
}

// The convolution of maps [B, n, n, C] by a scheme.
Array convolve(const ToeplitzShape& shape, const Array& maps, const Array& kernel,
               const Array& bias, bool relu, bool pool) {
  const int64_t images = maps.size(0), rows = images * shape.tiles() * shape.tiles();
  Array sums({shape.products(), rows, shape.channels});
  toeplitz_inputs(shape, images, maps.floats(), sums.floats(), rows * shape.channels);
  const Array weights = toeplitz_weights(shape.scheme, kernel);
  const int64_t outputs = kernel.size(0), width = 16;
  const int64_t side = shape.tiles() * shape.size().outputs / (pool ? 2 : 1);
  Array y({images, side, side, outputs}), products({shape.products(), rows, width});
  for (int64_t k = 0; k < outputs; k += width) {
    for (int64_t p = 0; p < shape.products(); ++p) {
      multiply(sums[p], weights[p], k, width, products[p].floats());
    }
    toeplitz_outputs(shape, images, products.floats(), rows * width, width,
                     {bias.floats() + k, relu, pool}, y.floats() + k, outputs);
  }
  return channels_first(y);
}

struct Case {
  int64_t n, kernel, padding;
  bool exact;  // whether all sums are whole numbers, or only up to rounding
};

class ToeplitzCaseTest : public testing::TestWithParam<Case> {};

TEST_P(ToeplitzCaseTest, IsTheConvolution) {
  const Case c = GetParam();
  const int64_t batch = 3, channels = 32, outputs = 48;
  Layer conv{Layer::Kind::kConv, "", outputs, c.kernel, 1, c.padding};
  const auto shape = toeplitz_shape(conv, {channels, c.n, c.n});
  ASSERT_TRUE(shape.has_value());
  const Array x = whole_numbers({batch, channels, c.n, c.n}, 7);
  const Array kernel = whole_numbers({outputs, channels, c.kernel, c.kernel}, 13);
  const Array bias = whole_numbers({outputs}, 3);
  const Array maps = channels_last(x), expected = convolve(conv, x, kernel, bias);
  const auto expect_same = [&](const Array& found, const Array& wanted) {
    const Array whole = each(found, [](float v) { return std::nearbyint(v); });
    EXPECT_EQ(difference(c.exact ? found : whole, wanted), 0);
  };
  expect_same(convolve(*shape, maps, kernel, bias, false, false), expected);
  expect_same(convolve(*shape, maps, kernel, bias, true, false), relu(expected));
  expect_same(convolve(*shape, maps, kernel, bias, false, true), pool(expected));
  expect_same(convolve(*shape, maps, kernel, bias, true, true), relu(pool(expected)));
}

// Only Whole2 has whole entries.
INSTANTIATE_TEST_SUITE_P(Schemes, ToeplitzCaseTest,
                         testing::Values(Case{2, 3, 1, true}, Case{4, 5, 2, false},
                                         Case{4, 3, 1, false}, Case{8, 3, 1, false},
                                         Case{10, 3, 0, false}));

TEST(ToeplitzTest, BlocksTurnAStrideIntoChannels) {
  for (const Layer& conv :
       {Layer{Layer::Kind::kConv, "", 16, 11, 4, 5}, Layer{Layer::Kind::kConv, "", 16, 5, 2, 2},
        Layer{Layer::Kind::kConv, "", 16, 6, 2, 1}}) {
    const Shape in = {3, 32, 32};
    const Array images = whole_numbers({1, 3, 32, 32}, 7);
    const Array kernel = whole_numbers({16, 3, conv.kernel, conv.kernel}, 13);
    auto shape = toeplitz_shape(conv, in);
    if (conv.kernel == 6) {  // 15 outputs fit no scheme
      EXPECT_FALSE(shape.has_value());
      continue;
    }
    ASSERT_TRUE(shape.has_value());
    Array blocks({1, shape->n, shape->n, shape->channels}), normalized = images.clone();
    std::vector<float> row(shape->n * conv.stride + in[2]);
    const std::vector<float> mean = {1, 2, 3}, scale = {1, 2, 4};
    cut_blocks(conv, in, *shape, images.floats(), mean.data(), scale.data(), row.data(),
               blocks.floats());
    for (int64_t i = 0; i < images.count(); ++i) {
      const int64_t c = i / (32 * 32);
      normalized.floats()[i] = (images.floats()[i] - mean[c]) * scale[c];
    }
    const Array of_blocks = block_kernel(kernel, conv.stride, *shape);
    Layer without_bias = conv, on_blocks{Layer::Kind::kConv, "", 16, of_blocks.size(2)};
    without_bias.bias = on_blocks.bias = false;
    EXPECT_EQ(difference(convolve(on_blocks, channels_first(blocks), of_blocks, {}),
                         convolve(without_bias, normalized, kernel, {})),
              0);
  }
}

TEST(ToeplitzTest, KeepsNaNThroughPooling) {
  const ToeplitzShape shape = {Scheme::kWhole2, 2, 1, 16};
  const Array bias({16});
  for (int64_t pixel = 0; pixel < 4; ++pixel) {
    Array x = whole_numbers({2, 2, 2, 16}, 7);
    std::fill_n(x[1].floats() + pixel * 16, 16, NAN);
    const Array y = convolve(shape, x, whole_numbers({16, 16, 3, 3}, 13), bias, true, true);
    ASSERT_EQ(y.count(), 2 * 16);
    for (int64_t i = 0; i < y.count(); ++i) EXPECT_EQ(std::isnan(y.floats()[i]), i >= 16) << i;
  }
}

TEST(ToeplitzTest, LeavesOtherConvolutionsAlone) {
  const auto shape = [](int64_t outputs, int64_t kernel, int64_t stride, int64_t padding,
                        Shape in) {
    return toeplitz_shape({Layer::Kind::kConv, "", outputs, kernel, stride, padding}, in);
  };
  EXPECT_TRUE(shape(16, 3, 1, 1, {16, 8, 8}));
  EXPECT_FALSE(shape(20, 3, 1, 1, {16, 8, 8}));  // outputs not a multiple of 16
  EXPECT_FALSE(shape(16, 3, 1, 1, {20, 8, 8}));
  EXPECT_FALSE(shape(16, 3, 1, 1, {16, 8, 4}));
  EXPECT_FALSE(shape(16, 3, 1, 1, {16, 6, 6}));
  EXPECT_FALSE(shape(16, 7, 1, 3, {16, 8, 8}));
  EXPECT_FALSE(shape(16, 9, 3, 4, {3, 36, 36}));
}

}  // namespace
}  // namespace fedsmooth
