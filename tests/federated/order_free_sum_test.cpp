#include "fedsmooth/federated/order_free_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace fedsmooth {
namespace {

OrderFreeSum sum_of(const std::vector<double>& values) {
  OrderFreeSum sum;
  for (const double value : values) sum += value;
  return sum;
}

TEST(OrderFreeSumTest, DoesNotDependOnTheOrder) {
  std::mt19937 generator(1);
  std::normal_distribution<double> normal;
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) values.push_back(std::exp(10 * normal(generator)) - 1);
  values.push_back(-1e12);
  const OrderFreeSum sum = sum_of(values);
  std::shuffle(values.begin(), values.end(), generator);
  EXPECT_EQ(sum_of(values), sum);
  // Parts of a sum are added word by word.
  OrderFreeSum halves = sum_of({values.begin(), values.begin() + 300});
  const OrderFreeSum rest = sum_of({values.begin() + 300, values.end()});
  std::vector<int64_t> words;
  OrderFreeSum::visit_words(rest, [&](int64_t word) { words.push_back(word); });
  size_t i = 0;
  OrderFreeSum::visit_words(halves, [&](int64_t& word) { word += words.at(i++); });
  EXPECT_EQ(halves, sum);
}

TEST(OrderFreeSumTest, IsTheSum) {
  EXPECT_EQ(OrderFreeSum().value(), 0.0);
  EXPECT_EQ(sum_of({0.5, -0.75, 3}).value(), 2.75);
  // Each of them is rounded to a multiple of 2^-32, by at most 2^-33.
  EXPECT_NEAR(sum_of(std::vector<double>(1000, 1.0 / 3)).value(), 1000.0 / 3, 1000 * 0x1p-33);
}

TEST(OrderFreeSumTest, IsNanAfterAValueThatIsNotFinite) {
  for (const double bad : {std::numeric_limits<double>::infinity(), 1e13, -1e13,
                           std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_TRUE(std::isnan(sum_of({1.0, bad, 2.0}).value())) << bad;
  }
}

}  // namespace
}  // namespace fedsmooth
