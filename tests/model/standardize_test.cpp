#include "fedsmooth/model/standardize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace fedsmooth {
namespace {

// 1, 2, 3, 6 has mean 3 and deviations -2, -1, 0, 3 of length sqrt(14).
TEST(StandardizeTest, GivesMeanZeroAndLengthOne) {
  const std::vector<float> w = {1, 2, 3, 6, 5, 5, 5, 5};
  std::vector<float> v(8);
  standardize({2, 4, 4, 1}, w.data(), v.data());
  const double length = std::sqrt(14 + kStandardizeEpsilon);
  const double expected[] = {-2 / length, -1 / length, 0, 3 / length, 0, 0, 0, 0};
  for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(v[i], expected[i], 1e-7) << i;
}

TEST(StandardizeTest, FiltersMayBeColumns) {
  const std::vector<float> rows = {1, 2, 3, 6, 4, 0, 1, 7}, columns = {1, 4, 2, 0, 3, 1, 6, 7};
  std::vector<float> a(8), b(8), da = {1, 0, -1, 2, 3, 1, 0, 1}, db = {1, 3, 0, 1, -1, 0, 2, 1};
  standardize({2, 4, 4, 1}, rows.data(), a.data());
  standardize({2, 4, 1, 2}, columns.data(), b.data());
  standardize_gradient({2, 4, 4, 1}, rows.data(), da.data());
  standardize_gradient({2, 4, 1, 2}, columns.data(), db.data());
  for (size_t k = 0; k < 2; ++k) {
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(a[4 * k + i], b[2 * i + k]);
      EXPECT_EQ(da[4 * k + i], db[2 * i + k]);
    }
  }
}

// v changes neither with a shift of w nor, up to epsilon, with its length.
TEST(StandardizeTest, TheGradientIsAlongNeitherShiftNorLength) {
  const std::vector<float> w = {1, -2, 3, 6};
  std::vector<float> gradient = {1, 0.5, -1, 2};
  standardize_gradient({1, 4, 4, 1}, w.data(), gradient.data());
  double sum = 0, along = 0, size = 0;
  for (size_t i = 0; i < 4; ++i) {
    sum += gradient[i];
    along += gradient[i] * (w[i] - 2);
    size += std::abs(gradient[i]);
  }
  EXPECT_NEAR(sum, 0, 1e-6);
  EXPECT_NEAR(along, 0, 1e-5);
  EXPECT_GT(size, 0.1);
}

}  // namespace
}  // namespace fedsmooth
