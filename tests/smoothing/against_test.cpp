#include "fedsmooth/smoothing/against.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/smoothing/statistics.h"
#include "tests/refusal.h"
#include "tests/smoothing/uniform_noise.h"

namespace fedsmooth {
namespace {

constexpr double kSigma = 0.25;

double phi(double z) { return std::erfc(-z / std::sqrt(2)) / 2; }

// Phi^-1 by bisection, near enough to say what is true.
double quantile(double p) {
  double low = -40, high = 40;
  for (int i = 0; i < 200; ++i) (phi((low + high) / 2) < p ? low : high) = (low + high) / 2;
  return low;
}

Counts counts_of(int64_t selected, int64_t n, const Tally& votes, const Tally& selection = {}) {
  return {selected, n,        votes_for(votes, selected), most_for_another(votes, selected),
          votes,    selection};
}

double above(const Counts& counts, const ClassSet& omega, double alpha = 0.001) {
  return radius_above(counts, omega, kSigma, alpha, kFloatNoise);
}

double against(const Counts& counts, const ClassSet& omega, int64_t classes, double alpha = 0.001) {
  return radius_against(counts, omega, classes, kSigma, alpha, kFloatNoise);
}

TEST(AgainstTest, AgainstAllOthersIsTheMulticlassRadius) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    const auto top = static_cast<int64_t>(300 + random() % 600);
    const auto second = static_cast<int64_t>(random() % (1000 - top));
    const Counts counts = counts_of(3, 1000, {{1, second / 2 + 1}, {3, top}, {7, second / 3 + 1}});
    const Certificate c =
        certificate_from_counts(counts, kSigma, 0.001, RadiusKind::kMulticlass, kFloatNoise);
    EXPECT_EQ(above(counts, {{3}, true}), c.radius) << top;
    EXPECT_EQ(above(counts, {{1, 7}}), c.radius) << top;  // the others got no vote
  }
}

// f is A for t < 0, B for 0 <= t < w and C beyond, x is at t = -d. C is no answer before p_C = p_A,
// at t = w / 2, and not before p_C = 1 / 4, at t = w + sigma Phi^-1(1 / 4).
TEST(AgainstTest, RadiiOfSlabsApproachTheirClosedForm) {
  constexpr int64_t kVotes = 100'000'000;
  const double d = 0.1;
  for (const double w : {0.1, 0.2, 0.6, 0.9}) {
    const double a = phi(d / kSigma), c = phi(-(d + w) / kSigma);
    const auto of_a = static_cast<int64_t>(a * kVotes), of_c = static_cast<int64_t>(c * kVotes);
    const Counts counts = counts_of(0, kVotes, {{0, of_a}, {1, kVotes - of_a - of_c}, {2, of_c}});
    const double equal = d + w / 2, below = d + w + kSigma * quantile(0.25);
    EXPECT_LE(above(counts, {{2}}), equal);
    EXPECT_NEAR(above(counts, {{2}}), equal, 0.002) << w;
    EXPECT_LE(against(counts, {{2}}, 3), std::max(equal, below));
    EXPECT_NEAR(against(counts, {{2}}, 3), std::max(equal, below), 0.005) << w;
    EXPECT_EQ(against(counts, {{2}}, 0), above(counts, {{2}}));  // K is not known
  }
}

// A share of alpha of images may claim too much. Omega has eight classes and no correction for it.
struct Law {
  double a;                   // of the selected class
  std::vector<double> omega;  // of the eight classes
};

TEST(AgainstTest, EightClassesAtTheNullAreExceededNoMoreOftenThanAlpha) {
  constexpr int kImages = 100'000;
  constexpr int64_t kVotes = 1000;
  constexpr double kAlpha = 0.05;
  const std::vector<Law> laws = {{0.5, std::vector<double>(8, 1.0 / 20)},
                                 {0.45, {0.3, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02}},
                                 {0.2, std::vector<double>(8, 0.09)},
                                 {0.08, {0.002, 0.002, 0.002, 0.002, 0.001, 0, 0, 0}}};
  ClassSet omega;
  for (int64_t c = 1; c <= 8; ++c) omega.listed.push_back(c);
  std::mt19937_64 random(2);
  int exceeded_at_all = 0;
  for (const Law& law : laws) {
    const double most = *std::max_element(law.omega.begin(), law.omega.end());
    const double true_above = kSigma / 2 * (quantile(law.a) - quantile(most));
    const double true_below = kSigma * (quantile(1.0 / 11) - quantile(most));
    std::map<std::pair<int64_t, int64_t>, std::pair<double, double>> known;  // R, and the larger
    int above_truth = 0, against_truth = 0;
    for (int i = 0; i < kImages; ++i) {
      int64_t left = kVotes;
      double rest = 1;
      const auto draw = [&](double p) {
        const int64_t k =
            std::binomial_distribution<int64_t>(left, std::min(1.0, p / rest))(random);
        left -= k;
        rest -= p;
        return k;
      };
      const int64_t top = draw(law.a);
      int64_t largest = 0;
      for (const double p : law.omega) largest = std::max(largest, draw(p));
      const auto [at, is_new] = known.try_emplace({top, largest});
      if (is_new) {
        Tally votes;
        if (top > 0) votes.push_back({0, top});
        if (largest > 0) votes.push_back({5, largest});
        if (kVotes > top + largest) votes.push_back({9, kVotes - top - largest});
        const Counts counts = counts_of(0, kVotes, votes);
        at->second = {above(counts, omega, kAlpha), against(counts, omega, 10, kAlpha)};
      }
      above_truth += at->second.first > std::max(0.0, true_above);
      against_truth += at->second.second > std::max({0.0, true_above, true_below});
    }
    const double most_errors = kImages * kAlpha + 4 * std::sqrt(kImages * kAlpha);
    EXPECT_LE(above_truth, most_errors) << law.a;
    EXPECT_LE(against_truth, most_errors) << law.a;
    exceeded_at_all += above_truth;
  }
  EXPECT_GT(exceeded_at_all, kImages * kAlpha / 20);  // or nothing was tested
}

TEST(AgainstTest, WeakClassesAreHeldBelowAnEqualShare) {
  const Counts counts = counts_of(0, 1000, {{0, 150}, {1, 2}, {2, 848}});
  const double u = binomial_upper_bound(2, 1000, 0.0005);
  const double expected = kSigma * (quantile(1.0 / 11) - quantile(u));
  EXPECT_GT(against(counts, {{1}}, 10), above(counts, {{1}}));
  EXPECT_LE(against(counts, {{1}}, 10), expected);
  EXPECT_NEAR(against(counts, {{1}}, 10), expected, 1e-9);
}

// Where most copies vote for nobody, "none" is what could keep the classes below an equal share.
TEST(AgainstTest, CopiesThatVoteForNobodyAreNoClassOutsideOmega) {
  const Counts broken = counts_of(0, 1000, {{0, 50}, {1, 2}});
  EXPECT_EQ(against(broken, {{1}}, 10), 0);
  EXPECT_GT(against(counts_of(0, 1000, {{0, 50}, {1, 2}, {2, 948}}), {{1}}, 10), 0);
  EXPECT_EQ(against(counts_of(0, 1000, {}), {{1}}, 10), 0);
}

TEST(AgainstTest, NothingIsClaimedOfItselfOrWithoutVotes) {
  const Counts counts = counts_of(1, 1000, {{1, 990}, {2, 10}});
  EXPECT_EQ(against(counts, {{1, 2}}, 10), 0);
  EXPECT_EQ(above(counts, {{2}, true}), 0);  // all but 2
  EXPECT_EQ(against({1}, {{2}}, 10), 0);
  EXPECT_GT(against(counts, {{0}}, 10), against(counts, {{2}}, 10));
  EXPECT_EQ(against(counts_of(1, 1000, {{0, 600}, {1, 400}}), {{0}}, 2), 0);
}

TEST(AgainstTest, VotesOfTwoClassesAreNotEnough) {
  EXPECT_FALSE(knows_all_votes({1, 1000, 990, 10}));
  EXPECT_FALSE(knows_all_votes({1, 1000, 0, 10}));
  EXPECT_TRUE(knows_all_votes({1, 1000, 0, 0}));
  EXPECT_THROW(against({1, 1000, 990, 10}, {{2}}, 10), Bug);
}

TEST(AgainstTest, ALawGivesItsOwnRadiusOrIsRefused) {
  const Counts counts = counts_of(0, 1000, {{0, 150}, {1, 2}, {2, 848}});
  const double lower = binomial_lower_bound(150, 1000, 0.0005);
  const double upper = binomial_upper_bound(2, 1000, 0.0005);
  EXPECT_EQ(radius_against(counts, {{1}}, 10, 0.5, 0.001, kUniformNoise), 0.5 * (lower - upper));
  NoiseLaw without = kUniformNoise;
  without.radius_between = nullptr;
  EXPECT_EQ(refusal([&] { radius_against(counts, {{1}}, 10, 0.5, 0.001, without); }),
            "noise=uniform: has no radius against given classes");
}

TEST(AgainstTest, TheLikeliestOthersByTheSelectionVotesAreAllowed) {
  const Counts counts = counts_of(4, 1000, {{4, 1000}}, {{0, 5}, {2, 9}, {4, 70}, {6, 9}, {7, 7}});
  const auto allowed = [&](int64_t k) { return beyond_top(counts, k, 10).listed; };
  EXPECT_EQ(allowed(1), (std::vector<int64_t>{4}));
  EXPECT_EQ(allowed(2), (std::vector<int64_t>{2, 4}));  // the first on ties
  EXPECT_EQ(allowed(4), (std::vector<int64_t>{2, 4, 6, 7}));
  EXPECT_EQ(allowed(7), (std::vector<int64_t>{0, 1, 2, 3, 4, 6, 7}));
  EXPECT_TRUE(beyond_top(counts, 2, 10).contains(6));
  EXPECT_FALSE(beyond_top(counts, 2, 10).contains(2));
  EXPECT_THROW(beyond_top(counts, 10, 10), Error);
  EXPECT_THROW(beyond_top(counts, 0, 10), Error);
}

}  // namespace
}  // namespace fedsmooth
