#include "fedsmooth/smoothing/e_process.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace fedsmooth {
namespace {

double log_e(int64_t k, int64_t n, double p) { return log_e_value(k, n, p, 1 - p); }

struct Known {
  int64_t k, n;
  double p, log_e;
};

// Computed with 50 digits, by quadrature of the mixture.
const std::vector<Known> kKnown = {
    {2, 10, 0.5, -2.43882481490095950},
    {10, 10, 0.5, 5.88830521639797965},
    {99, 100, 0.8413, 12.12293709992295099},
    {987, 1000, 0.97725, 1.16615664417431078},
    {100'000, 100'000, 0.9986501, 132.507584644660266},
    {842'071, 1'000'000, 0.84134, -3.808471837100323651},
    {843'532, 1'000'000, 0.84134, 12.27563848171789108},
    {9'901'888, 10'000'000, 0.99, 12.58362669854070484},
    {10'000'000, 10'000'000, 0.99, 100497.479617220195558},
    {10'000'000, 10'000'000, 0.5, 6931463.867333852750258},
    {10'000'000, 10'000'000, 0.999999, 8.72792229277362605},
    {4'294'900'000, 4'294'967'296, 0.99998, 2172.632403742787754},
    {4'294'967'296, 4'294'967'296, 0.9999999, 426.34466153122197},
};

TEST(EProcessTest, NothingIsLostAndNothingIsRoundedUp) {
  for (const auto& [k, n, p, expected] : kKnown) {
    const double found = log_e(k, n, p);
    EXPECT_LE(found, expected) << k << " of " << n;
    EXPECT_GT(found, expected - std::max(1e-9, 1e-15 * expected)) << k << " of " << n;
  }
}

// The mixture is of laws, so that at the border of the hypothesis E has mean 1, and below it less.
TEST(EProcessTest, MeanIsOneAtTheBorderAndLessBelow) {
  const auto mean = [](int n, double p, double truth) {
    double sum = 0;
    for (int k = 0; k <= n; ++k) {
      const double log_choose =
          std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0);
      sum += std::exp(log_choose + k * std::log(truth) + (n - k) * std::log1p(-truth) +
                      log_e(k, n, p));
    }
    return sum;
  };
  for (const double p : {0.5, 0.6914624612740131, 0.8413447460685429, 0.9986501019683699}) {
    for (const int n : {1, 2, 3, 10, 30, 200}) {
      EXPECT_NEAR(mean(n, p, p), 1, 1e-10) << p << " " << n;
      EXPECT_LT(mean(n, p, 0.99 * p), 1) << p << " " << n;
    }
  }
}

TEST(EProcessTest, GrowsWithTheSuccesses) {
  for (const double p : {0.5, 0.9, 0.125}) {
    double last = log_e(0, 50, p);
    for (int64_t k = 1; k <= 50; ++k) {
      EXPECT_GT(log_e(k, 50, p), last);
      last = log_e(k, 50, p);
    }
  }
}

TEST(EProcessTest, TheLeastSuccessesAreThoseThatReachTheLevel) {
  for (const double p : {0.5, 0.8413, 0.9987}) {
    for (const int64_t n : {20, 500, 100'000}) {
      const int64_t k = successes_against(n, p, 1 - p, 0.001);
      if (k <= n) {
        EXPECT_GE(log_e(k, n, p), std::log(1000)) << p << " " << n;
      }
      EXPECT_LT(log_e(k - 1, n, p), std::log(1000)) << p << " " << n;
    }
  }
  EXPECT_EQ(successes_against(20, 0.9987, 1 - 0.9987, 0.001), 21);  // none is enough
}

// Ville's inequality, by 100,000 sequences that are looked at after every vote. Their probability
// is just below the border; E passes 20 in at most one of 20.
TEST(EProcessTest, IsRarelyFooledHoweverOftenOneLooks) {
  constexpr double kBorder = 0.8413447460685429, kAlpha = 0.05;
  constexpr int kVotes = 300, kRuns = 100'000;
  std::vector<int64_t> needed = {1};
  for (int n = 1; n <= kVotes; ++n) {
    needed.push_back(successes_against(n, kBorder, 1 - kBorder, kAlpha));
  }
  std::mt19937 generator(1);
  const auto border = static_cast<uint32_t>((kBorder - 1e-6) * 0x1p32);
  int fooled = 0;
  for (int run = 0; run < kRuns; ++run) {
    int64_t k = 0;
    for (int n = 1; n <= kVotes; ++n) {
      k += generator() < border;
      if (k < needed[n]) continue;
      ++fooled;
      break;
    }
  }
  EXPECT_LE(fooled, kRuns * kAlpha + 4 * std::sqrt(kRuns * kAlpha * (1 - kAlpha)));
  EXPECT_GE(fooled, kRuns * kAlpha / 3);  // or the test would not see a threefold alpha
}

}  // namespace
}  // namespace fedsmooth
