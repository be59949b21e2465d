#include "fedsmooth/engine/toeplitz.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace fedsmooth {
namespace {

// Whole numbers, so that every sum is exact and the two ways must agree to the bit.
Tensor whole_numbers(at::IntArrayRef shape, int64_t seed) {
  const int64_t count = c10::multiply_integers(shape);
  return at::arange(count).mul(seed).remainder(11).sub(5).to(at::kFloat).view(shape);
}

TEST(ToeplitzTest, IsTheConvolution) {
  for (const int64_t n : {1, 2, 4, 8}) {
    for (const int64_t k : {1, 3, 5}) {
      const int64_t batch = 3, channels = 5, outputs = 7;
      const Tensor x = whole_numbers({batch, channels, n, n}, 7);
      const Tensor kernel = whole_numbers({outputs, channels, k, k}, 13);
      const Tensor bias = whole_numbers({outputs}, 3);
      const Tensor expected =
          at::conv2d(x, kernel, bias, 1, k / 2).permute({0, 2, 3, 1}).contiguous();

      const ToeplitzAxis axis(n);
      const int64_t products = axis.products * axis.products;
      const Tensor maps = x.permute({0, 2, 3, 1}).contiguous();
      Tensor sums = at::empty({products, batch, channels});
      toeplitz_inputs(axis, batch, channels, maps.data_ptr<float>(), sums.data_ptr<float>());
      const Tensor results = at::bmm(sums, toeplitz_weights(axis, kernel)).contiguous();
      Tensor y = at::empty({batch, n, n, outputs});
      toeplitz_outputs(axis, batch, outputs, results.data_ptr<float>(), bias.data_ptr<float>(),
                       false, y.data_ptr<float>());
      EXPECT_TRUE(at::equal(y, expected)) << "map " << n << ", kernel " << k;
      toeplitz_outputs(axis, batch, outputs, results.data_ptr<float>(), bias.data_ptr<float>(),
                       true, y.data_ptr<float>());
      EXPECT_TRUE(at::equal(y, expected.relu())) << "map " << n << ", kernel " << k;
    }
  }
}

TEST(ToeplitzTest, TakesThreeProductsPerHalving) {
  EXPECT_EQ(ToeplitzAxis(2).products, 3);
  EXPECT_EQ(ToeplitzAxis(4).products, 9);
  EXPECT_TRUE(toeplitz_pays(2, 3));
  EXPECT_TRUE(toeplitz_pays(4, 5));
  EXPECT_FALSE(toeplitz_pays(2, 1));
  EXPECT_FALSE(toeplitz_pays(3, 3));
}

}  // namespace
}  // namespace fedsmooth
