#include "fedsmooth/base/draws.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace fedsmooth {
namespace {

Draws draws(uint32_t item) { return Draws({make_key(3, Purpose::kPartition), item}); }

TEST(DrawsTest, EqualStreamsDrawEqualNumbers) {
  Draws a = draws(1), b = draws(1), c = draws(2);
  int equal = 0;
  for (int i = 0; i < 200; ++i) {
    const uint32_t word = a.word();
    EXPECT_EQ(word, b.word());
    equal += word == c.word();
  }
  EXPECT_EQ(equal, 0);
}

// Each of n numbers count/n times, within five standard deviations.
TEST(DrawsTest, NumbersBelowNAreUniform) {
  for (const int64_t n : {1, 2, 3, 10, 1000}) {
    Draws source = draws(static_cast<uint32_t>(n));
    std::vector<int64_t> times(n, 0);
    const int64_t count = 100 * n + 20'000;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t drawn = source.below(n);
      ASSERT_TRUE(0 <= drawn && drawn < n);
      ++times[drawn];
    }
    const double mean = static_cast<double>(count) / static_cast<double>(n);
    for (const int64_t t : times) {
      EXPECT_NEAR(static_cast<double>(t), mean, 5 * std::sqrt(mean)) << n;
    }
  }
}

// 2^32 mod n is largest just above 2^31: half of the words must be thrown away.
TEST(DrawsTest, LargeRangesHaveNoBias) {
  Draws source = draws(5);
  const int64_t n = (int64_t{1} << 31) + 1;
  int64_t low = 0;
  for (int i = 0; i < 20'000; ++i) low += source.below(n) < n / 2;
  EXPECT_NEAR(static_cast<double>(low), 10'000, 5 * std::sqrt(5000.0));
}

// Mean and variance of Gamma(a, 1) are both a; the sample mean has variance a / count, the sample
// variance (2 a^2 + 6 a) / count.
TEST(DrawsTest, GammaHasItsMeanAndVariance) {
  for (const double shape : {0.1, 0.5, 1.0, 2.5, 40.0}) {
    Draws source = draws(static_cast<uint32_t>(100 * shape));
    constexpr int kCount = 100'000;
    double sum = 0, squares = 0;
    for (int i = 0; i < kCount; ++i) {
      const double x = source.gamma(shape);
      ASSERT_GE(x, 0);
      sum += x;
      squares += x * x;
    }
    const double mean = sum / kCount, variance = squares / kCount - mean * mean;
    EXPECT_NEAR(mean, shape, 5 * std::sqrt(shape / kCount)) << shape;
    EXPECT_NEAR(variance, shape, 6 * std::sqrt((2 * shape * shape + 6 * shape) / kCount)) << shape;
  }
}

// P[Gamma(1) > t] = exp(-t).
TEST(DrawsTest, GammaOfShapeOneIsExponential) {
  Draws source = draws(9);
  std::vector<int64_t> above(4, 0);
  for (int i = 0; i < 50'000; ++i) {
    const double x = source.gamma(1);
    for (size_t t = 0; t < above.size(); ++t) above[t] += x > static_cast<double>(t);
  }
  for (size_t t = 0; t < above.size(); ++t) {
    const double p = std::exp(-static_cast<double>(t));
    EXPECT_NEAR(static_cast<double>(above[t]), 50'000 * p, 5 * std::sqrt(50'000 * p)) << t;
  }
}

// Both ways of choosing, with and without the list written out.
TEST(DrawsTest, ChosenNumbersAreDifferentAndUniform) {
  for (const int64_t count : {1, 2, 3, 5, 12}) {
    std::vector<int64_t> times(12, 0);
    constexpr int kTrials = 6000;
    for (int i = 0; i < kTrials; ++i) {
      const auto chosen = draws(static_cast<uint32_t>(1000 * count + i)).choose(count, 12);
      ASSERT_EQ(std::set<int64_t>(chosen.begin(), chosen.end()).size(), static_cast<size_t>(count));
      for (const int64_t c : chosen) ++times.at(c);
    }
    const double mean = kTrials * static_cast<double>(count) / 12;
    for (const int64_t t : times) {
      EXPECT_NEAR(static_cast<double>(t), mean, 5 * std::sqrt(mean)) << count;
    }
  }
}

TEST(DrawsTest, TheOrderOfAChoiceIsUniformToo) {
  std::vector<int64_t> times(6, 0);
  for (int i = 0; i < 6000; ++i) {
    const auto order = draws(static_cast<uint32_t>(i)).choose(3, 3);
    ++times[2 * order[0] + (order[1] > order[2])];
  }
  for (const int64_t t : times) EXPECT_NEAR(static_cast<double>(t), 1000, 5 * std::sqrt(1000.0));
}

}  // namespace
}  // namespace fedsmooth
