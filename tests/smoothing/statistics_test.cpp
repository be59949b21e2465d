#include "fedsmooth/smoothing/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/math/constants/constants.hpp>
#include <boost/math/distributions/binomial.hpp>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <map>
#include <random>
#include <vector>

namespace fedsmooth {
namespace {

using Rational = boost::multiprecision::cpp_rational;

// Reference values in long double from exact tail sums (Cohen's CERTIFY at alpha = 0.001).
struct Reference {
  int64_t n, k;
  double p_lower, z;
};
constexpr Reference kReferences[] = {
    {100000, 100000, 0.999930924833009, 3.811456563390},
    {100000, 99999, 0.999907669666265, 3.739126668543},
    {100000, 99990, 0.999758677343591, 3.490207680147},
    {100000, 99900, 0.998650992446753, 3.000200987668},
    {100000, 99000, 0.988989340377475, 2.289999955214},
    {100000, 90000, 0.897036496223829, 1.264844690337},
    {100000, 75000, 0.745746842135567, 0.661165293912},
    {100000, 51000, 0.505109349244056, 0.012807589419},
    {1000, 1000, 0.993116048420934, 2.463262614781},
    {1000, 900, 0.867464018025748, 1.114483162280},
    {100, 100, 0.933254300796991, 1.500475024121},
    {100, 80, 0.653557271289381, 0.394942318916},
    {10, 10, 0.501187233627272, 0.002975957771},
};

TEST(StatisticsTest, BoundsAndQuantilesAreTheReferenceValues) {
  for (const Reference& r : kReferences) {
    const double p = binomial_lower_bound(r.k, r.n, 0.001);
    EXPECT_NEAR(p, r.p_lower, 1e-12) << r.k << " of " << r.n;
    EXPECT_NEAR(normal_quantile_below(p), r.z, 1e-12) << r.k << " of " << r.n;
  }
  EXPECT_NEAR(binomial_lower_bound(9, 9, 0.001), 0.464158883361278, 1e-12);
}

TEST(StatisticsTest, TheFewestVotesThatCertifyAreKnown) {
  const auto fewest = [](int64_t n, double alpha) {
    int64_t k = n / 2;
    while (binomial_lower_bound(k, n, alpha) < 0.5) ++k;
    return k;
  };
  EXPECT_EQ(fewest(100, 0.001), 66);
  EXPECT_EQ(fewest(1000, 0.001), 550);
  EXPECT_EQ(fewest(10'000, 0.001), 5156);
  EXPECT_EQ(fewest(100'000, 0.001), 50'490);
  EXPECT_EQ(fewest(100'000, 0.01), 50'369);
}

// Boost's inverse throws for two or three of n successes at 1e-100.
TEST(StatisticsTest, BoundsExistAtEveryLevel) {
  EXPECT_TRUE(is_level(1e-50));
  EXPECT_FALSE(is_level(9e-51));
  EXPECT_FALSE(is_level(0));
  EXPECT_FALSE(is_level(1));
  EXPECT_FALSE(is_level(NAN));
  for (const double alpha : {1e-30, 1e-50, 5e-51}) {  // the last for one of two bounds
    for (const int64_t n : {1LL, 2LL, 3LL, 5LL, 10LL, 30LL, 100LL, 1000LL, 100'000LL, 1LL << 32}) {
      for (int64_t k = 0; k <= std::min<int64_t>(n, 20); ++k) {
        EXPECT_LE(binomial_lower_bound(k, n, alpha), static_cast<double>(k) / n);
        EXPECT_LE(binomial_lower_bound(n - k, n, alpha), static_cast<double>(n - k) / n);
      }
    }
  }
}

// P[Bin(n, p) >= k] without rounding: doubles are rationals.
Rational exact_upper_tail(int64_t k, int64_t n, double p) {
  const Rational success(p), failure = 1 - success;
  Rational sum = 0;
  for (int64_t i = k; i <= n; ++i) {
    Rational term = 1;
    for (int64_t j = 0; j < i; ++j) term *= success * (n - j) / (j + 1);
    for (int64_t j = i; j < n; ++j) term *= failure;
    sum += term;
  }
  return sum;
}

TEST(StatisticsTest, LowerBoundHoldsExactlyAndIsTight) {
  for (const double alpha : {0.05, 0.001}) {
    for (int64_t n = 1; n <= 30; n += n < 10 ? 1 : 5) {
      for (int64_t k = 1; k <= n; ++k) {
        const double p = binomial_lower_bound(k, n, alpha);
        EXPECT_LE(exact_upper_tail(k, n, p), Rational(alpha)) << k << " of " << n;
        EXPECT_GT(exact_upper_tail(k, n, p + 1e-12), Rational(alpha)) << k << " of " << n;
      }
    }
  }
}

TEST(StatisticsTest, UpperBoundHoldsExactlyAndIsTight) {
  for (const double alpha : {0.05, 0.001}) {
    for (const int64_t n : {1, 2, 7, 12, 30}) {
      for (int64_t k = 0; k < n; ++k) {
        const double p = binomial_upper_bound(k, n, alpha);
        // P[Bin(n, p) <= k] = 1 - P[Bin(n, p) >= k + 1].
        EXPECT_LE(1 - exact_upper_tail(k + 1, n, p), Rational(alpha)) << k << " of " << n;
        EXPECT_GT(1 - exact_upper_tail(k + 1, n, p - 1e-12), Rational(alpha)) << k << " of " << n;
      }
      EXPECT_EQ(binomial_upper_bound(n, n, alpha), 1.0);
    }
  }
}

TEST(StatisticsTest, BoundsGrowWithTheCount) {
  for (const int64_t n : {50, 1000, 100'000}) {
    double below = -1, above = -1;
    for (int64_t k = 0; k <= n; k += std::max<int64_t>(1, n / 500)) {
      const double low = binomial_lower_bound(k, n, 0.001);
      const double high = binomial_upper_bound(k, n, 0.001);
      EXPECT_GT(low, below) << k;
      EXPECT_GE(high, above) << k;
      EXPECT_LE(low, static_cast<double>(k) / static_cast<double>(n));
      EXPECT_GE(high, static_cast<double>(k) / static_cast<double>(n));
      below = low;
      above = high;
    }
  }
}

TEST(StatisticsTest, NoVoteProvesNothing) { EXPECT_EQ(binomial_lower_bound(0, 100, 0.001), 0.0); }

using Real = boost::multiprecision::cpp_bin_float_50;

// By Stirling's series, good to more than 40 digits from a million on.
Real log_factorial(const Real& n) {
  const Real two_pi = 2 * boost::math::constants::pi<Real>();
  return n * log(n) - n + log(two_pi * n) / 2 + 1 / (12 * n) - 1 / (360 * pow(n, 3)) +
         1 / (1260 * pow(n, 5));
}

// P[Bin(n, p) >= k] for k above the mean: the terms fall from the first one on.
Real upper_tail(int64_t k, int64_t n, double p) {
  const Real q = 1 - Real(p);
  Real term = exp(log_factorial(n) - log_factorial(k) - log_factorial(n - k) + k * log(Real(p)) +
                  (n - k) * log(q));
  Real sum = term;
  for (int64_t j = k; term > sum * Real(1e-25); ++j) {
    term *= Real(n - j) / (j + 1) * p / q;
    sum += term;
  }
  return sum;
}

TEST(StatisticsTest, HugeCountsAreBoundedFromTheSafeSide) {
  const int64_t most = int64_t{1} << 30;
  for (const int64_t n : {int64_t{10'000'000}, int64_t{100'000'000}, most}) {
    for (const double share : {0.5, 0.55, 0.9}) {
      const auto k = static_cast<int64_t>(share * static_cast<double>(n));
      for (const double alpha : {0.05, 0.001}) {
        const Real tail = upper_tail(k, n, binomial_lower_bound(k, n, alpha));
        EXPECT_LE(tail, alpha) << n << " " << share;
        EXPECT_GE(tail, alpha * (1 - 1e-6)) << n << " " << share;
      }
    }
  }
  const double p = binomial_lower_bound(most, most, 0.001);
  EXPECT_LT(p, 1.0);
  EXPECT_NEAR((1 - p) * static_cast<double>(most), -std::log(0.001), 1e-3);
}

// The guarantee itself: counts drawn with probability p give a bound above p in at most a share
// alpha. A million draws; the failures are binomial, so five standard deviations above alpha.
TEST(StatisticsTest, LowerBoundFailsNoMoreOftenThanAlpha) {
  constexpr int kDraws = 1'000'000;
  std::mt19937_64 generator(1);
  for (const double alpha : {0.05, 0.001}) {
    for (const double p : {0.5, 0.7, 0.9}) {
      for (const int64_t n : {100, 10'000}) {
        std::binomial_distribution<int64_t> draw(n, p);
        std::map<int64_t, int> counts;
        for (int i = 0; i < kDraws; ++i) ++counts[draw(generator)];
        int failures = 0;
        for (const auto& [k, times] : counts) {
          if (binomial_lower_bound(k, n, alpha) > p) failures += times;
        }
        const double limit = kDraws * alpha + 5 * std::sqrt(kDraws * alpha * (1 - alpha));
        EXPECT_LE(failures, limit) << "alpha " << alpha << " p " << p << " n " << n;
        // Discreteness may make the bound cautious, but not idle.
        EXPECT_GE(failures, kDraws * alpha / 20) << "alpha " << alpha << " p " << p << " n " << n;
      }
    }
  }
}

TEST(StatisticsTest, QuantilesBracketTheTruth) {
  // Phi in long double by its own series would only repeat Boost; erfcl of the C library is another
  // implementation.
  const auto phi = [](double z) {
    return std::erfc(-static_cast<long double>(z) / std::sqrt(2.0L)) / 2;
  };
  std::mt19937_64 generator(2);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  for (int i = 0; i < 10'000; ++i) {
    double p = uniform(generator);
    if (i % 3 == 0) p = 1 - std::pow(10.0, -16 * p);  // close to one
    if (i % 3 == 1) p = std::pow(10.0, -200 * p);     // close to zero
    if (p <= 0 || p >= 1) continue;
    const double below = normal_quantile_below(p), above = normal_quantile_above(p);
    ASSERT_LE(below, above);
    if (p < 0.5) {
      ASSERT_LE(phi(below), static_cast<long double>(p) * (1 + 1e-16L)) << p;
      ASSERT_GE(phi(above), static_cast<long double>(p) * (1 - 1e-16L)) << p;
    } else {
      ASSERT_GE(phi(-below), (1 - static_cast<long double>(p)) * (1 - 1e-16L)) << p;
      ASSERT_LE(phi(-above), (1 - static_cast<long double>(p)) * (1 + 1e-16L)) << p;
    }
    ASSERT_NEAR(below, above, 1e-11 * std::max(1.0, std::abs(below))) << p;
  }
  EXPECT_NEAR(normal_quantile_below(0.5), 0.0, 1e-12);
  EXPECT_LE(normal_quantile_below(0.5), 0.0);
}

TEST(StatisticsTest, ProductsAreRoundedDown) {
  std::mt19937_64 generator(3);
  std::uniform_real_distribution<double> uniform(0.0, 4.0);
  for (int i = 0; i < 100'000; ++i) {
    const double a = uniform(generator), b = uniform(generator), product = multiply_down(a, b);
    ASSERT_LE(static_cast<long double>(product), static_cast<long double>(a) * b);
    ASSERT_GE(product, std::nextafter(a * b, 0.0));
  }
}

TEST(StatisticsTest, FairCoinIsExact) {
  EXPECT_EQ(fair_coin_p_value(0, 0), 1.0);
  EXPECT_EQ(fair_coin_p_value(1, 2), 1.0);
  EXPECT_EQ(fair_coin_p_value(10, 10), std::pow(2.0, -9));
  EXPECT_NEAR(fair_coin_p_value(8, 10), 2 * 56.0 / 1024, 1e-15);
}

// Sums of exact fractions.
TEST(StatisticsTest, FisherPValueMatchesTheHandComputedOne) {
  EXPECT_NEAR(fisher_p_value(3, 4, 1, 4), 17.0 / 70, 1e-15);
  EXPECT_NEAR(fisher_p_value(10, 10, 5, 10), 252.0 / 15504, 1e-15);
  EXPECT_EQ(fisher_p_value(0, 10, 5, 10), 1);
  EXPECT_NEAR(fisher_p_value(5, 10, 0, 10), 252.0 / 15504, 1e-15);
  EXPECT_NEAR(fisher_p_value(990, 1000, 970, 1000) / 0.0010041667809150049, 1, 1e-12);
  EXPECT_NEAR(fisher_p_value(99'990, 100'000, 99'950, 100'000) / 8.050081188698278e-08, 1, 1e-10);
  EXPECT_EQ(fisher_p_value(7, 7, 4, 4), 1);
}

// The chances of both tails are summed from different ends: P[X >= k] + P[X <= k - 1] = 1, and the
// second is the first with successes and failures exchanged.
TEST(StatisticsTest, FisherTailsAddUpToOne) {
  for (const int64_t n : {50, 1'000, 100'000, 10'000'000}) {
    for (const double share : {0.5, 0.9, 0.999}) {
      const auto k = static_cast<int64_t>(share * static_cast<double>(n));
      for (const int64_t other : {k - k / 100, k, k + (n - k) / 2}) {
        const double above = fisher_p_value(k, n, other, n);
        const double below = fisher_p_value(n - k + 1, n, n - other - 1, n);
        EXPECT_NEAR(above + below, 1, 1e-9) << n << " " << k << " " << other;
      }
    }
  }
}

// Under the null its law lies below the uniform one: exact, by all outcomes of small samples.
TEST(StatisticsTest, FisherPValueIsSuperUniform) {
  constexpr int64_t kN = 40, kOther = 25;
  for (const double p : {0.1, 0.5, 0.9, 0.99}) {
    const boost::math::binomial first(kN, p), second(kOther, p);
    for (const double t : {0.001, 0.01, 0.05, 0.3, 0.7}) {
      double chance = 0;
      for (int64_t k = 0; k <= kN; ++k) {
        for (int64_t other = 0; other <= kOther; ++other) {
          if (fisher_p_value(k, kN, other, kOther) > t) continue;
          chance += pdf(first, static_cast<double>(k)) * pdf(second, static_cast<double>(other));
        }
      }
      EXPECT_LE(chance, t) << p;
      EXPECT_GT(chance, 0) << p;
    }
  }
}

// And by draws at the size of certificates: 4,000 of them, so that a share of t has a standard
// deviation of sqrt(t (1 - t) / 4000), four of which are allowed above t. Below, the law must not
// be far from uniform either, or nothing would ever be found.
TEST(StatisticsTest, FisherPValueIsNearlyUniformForManyVotes) {
  std::mt19937_64 random(5);
  std::binomial_distribution<int64_t> votes(100'000, 0.8);
  constexpr int kDraws = 4000;
  std::vector<double> values;
  for (int i = 0; i < kDraws; ++i) {
    const int64_t k = votes(random), other = votes(random);
    values.push_back(fisher_p_value(k, 100'000, other, 100'000));
  }
  for (const double t : {0.01, 0.1, 0.5, 0.9}) {
    const auto below =
        std::count_if(values.begin(), values.end(), [t](double value) { return value <= t; });
    const double share = static_cast<double>(below) / kDraws;
    const double sd = std::sqrt(t * (1 - t) / kDraws);
    EXPECT_LE(share, t + 4 * sd) << t;
    EXPECT_GE(share, t - 4 * sd - 0.01) << t;
  }
}

}  // namespace
}  // namespace fedsmooth
