#include "fedsmooth/engine/cpu/toeplitz.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace fedsmooth {
namespace {

Tensor whole_numbers(at::IntArrayRef shape, int64_t seed) {
  const int64_t count = c10::multiply_integers(shape);
  return at::arange(count).mul(seed).remainder(11).sub(5).to(at::kFloat).view(shape);
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

// The convolution of maps [B, n, n, C] by products with at::bmm.
Tensor convolve(const ToeplitzShape& shape, const Tensor& maps, const Tensor& kernel,
                const Tensor& bias, bool relu, bool pool) {
  const int64_t images = maps.size(0), rows = images * shape.tiles() * shape.tiles();
  Tensor sums = at::empty({shape.products(), rows, shape.channels});
  toeplitz_inputs(shape, images, maps.data_ptr<float>(), sums.data_ptr<float>(),
                  rows * shape.channels);
  const Tensor weights = toeplitz_weights(shape.scheme, kernel);
  const int64_t outputs = kernel.size(0), width = 16;
  const int64_t side = shape.tiles() * shape.size().outputs / (pool ? 2 : 1);
  Tensor y = at::empty({images, side, side, outputs});
  for (int64_t k = 0; k < outputs; k += width) {
    const Tensor products = at::bmm(sums, weights.narrow(2, k, width)).contiguous();
    toeplitz_outputs(shape, images, products.data_ptr<float>(), rows * width, width,
                     {bias.data_ptr<float>() + k, relu, pool}, y.data_ptr<float>() + k, outputs);
  }
  return y.permute({0, 3, 1, 2});
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
  const Tensor x = whole_numbers({batch, channels, c.n, c.n}, 7);
  const Tensor kernel = whole_numbers({outputs, channels, c.kernel, c.kernel}, 13);
  const Tensor bias = whole_numbers({outputs}, 3);
  const Tensor maps = x.permute({0, 2, 3, 1}).contiguous();
  const Tensor expected = at::conv2d(x, kernel, bias, 1, c.padding);
  const auto expect_same = [&](const Tensor& found, const Tensor& wanted) {
    EXPECT_TRUE(at::equal(c.exact ? found : found.round(), wanted));
  };
  expect_same(convolve(*shape, maps, kernel, bias, false, false), expected);
  expect_same(convolve(*shape, maps, kernel, bias, true, false), expected.relu());
  expect_same(convolve(*shape, maps, kernel, bias, false, true), at::max_pool2d(expected, 2));
  expect_same(convolve(*shape, maps, kernel, bias, true, true), at::max_pool2d(expected, 2).relu());
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
    const Tensor images = whole_numbers({1, 3, 32, 32}, 7);
    const Tensor kernel = whole_numbers({16, 3, conv.kernel, conv.kernel}, 13);
    auto shape = toeplitz_shape(conv, in);
    if (conv.kernel == 6) {  // 15 outputs fit no scheme
      EXPECT_FALSE(shape.has_value());
      continue;
    }
    ASSERT_TRUE(shape.has_value());
    Tensor blocks = at::empty({shape->n, shape->n, shape->channels});
    Tensor row = at::empty({shape->n * conv.stride + in[2]});
    const std::vector<float> mean = {1, 2, 3}, scale = {1, 2, 4};
    cut_blocks(conv, in, *shape, images.data_ptr<float>(), mean.data(), scale.data(),
               row.data_ptr<float>(), blocks.data_ptr<float>());
    const Tensor normalized =
        (images - at::tensor(mean).view({3, 1, 1})) * at::tensor(scale).view({3, 1, 1});
    const Tensor found = at::conv2d(blocks.permute({2, 0, 1}).unsqueeze(0),
                                    block_kernel(kernel, conv.stride, *shape));
    EXPECT_TRUE(at::equal(found, at::conv2d(normalized, kernel, {}, conv.stride, conv.padding)));
  }
}

TEST(ToeplitzTest, KeepsNaNThroughPooling) {
  const ToeplitzShape shape = {Scheme::kWhole2, 2, 1, 16};
  const Tensor bias = at::zeros({16});
  for (int64_t pixel = 0; pixel < 4; ++pixel) {
    Tensor x = whole_numbers({2, 2, 2, 16}, 7);
    x.view({2, 4, 16})[1][pixel].fill_(NAN);
    const Tensor y = convolve(shape, x, whole_numbers({16, 16, 3, 3}, 13), bias, true, true);
    EXPECT_TRUE(y[1].isnan().all().item<bool>());
    EXPECT_FALSE(y[0].isnan().any().item<bool>());
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
