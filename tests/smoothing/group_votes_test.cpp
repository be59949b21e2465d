#include "fedsmooth/smoothing/group_votes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "fedsmooth/smoothing/statistics.h"

namespace fedsmooth {
namespace {

// What each of the groups votes for; -1: for nobody.
using Answers = std::vector<int64_t>;

Votes votes_of(const Answers& answers, int64_t classes) {
  Votes votes(classes, 0);
  for (const int64_t c : answers) {
    if (c >= 0) ++votes[c];
  }
  return votes;
}

Answers random_answers(std::mt19937& random, int64_t groups, int64_t classes) {
  std::uniform_int_distribution<int64_t> answer(-1, classes - 1);
  Answers answers;
  for (int64_t g = 0; g < groups; ++g) answers.push_back(answer(random));
  return answers;
}

TEST(GroupVotesTest, TheGapIsNotNegativeExactlyForTheAnswer) {
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const int64_t classes = 2 + i % 4, groups = 1 + i % 7;
    const Votes votes = votes_of(random_answers(random, groups, classes), classes);
    for (int64_t c = 0; c < classes; ++c) {
      EXPECT_EQ(gap_of(votes, c) >= 0, majority(votes) == c) << i;
      EXPECT_LE(gap_of(votes, c), groups - (c > 0 ? 1 : 0)) << i;
    }
  }
}

TEST(GroupVotesTest, AGapOfTwiceMOutlivesEveryReplacementOfMGroups) {
  std::mt19937 random(2);
  int64_t at_the_edge = 0;
  for (int i = 0; i < 100'000; ++i) {
    const int64_t classes = 2 + i % 3, groups = 3 + i % 6, m = 1 + i % 2;
    Answers answers = random_answers(random, groups, classes);
    for (int64_t g = 0; g < groups / 2; ++g) answers[g] = i % classes;  // so that gaps are wide
    const int64_t c = i % classes, gap = gap_of(votes_of(answers, classes), c);
    Answers poisoned = answers;
    for (int64_t j = 0; j < m; ++j) {
      const auto g = static_cast<size_t>(random() % groups);
      poisoned[g] = static_cast<int64_t>(random() % (classes + 1)) - 1;
    }
    const Votes after = votes_of(poisoned, classes);
    if (gap >= 2 * m) {
      EXPECT_EQ(majority(after), c) << i;
      at_the_edge += gap_of(after, c) == 0;
    }
    if (gap >= 0 && majority(after) >= 0) {
      EXPECT_GE(gap_of(after, c), gap - 2 * m) << i;
    }
  }
  EXPECT_GT(at_the_edge, 100);  // a smaller gap would not be enough
}

TEST(GroupVotesTest, CopiesWithoutVotesCountBelowZero) {
  const float nothing[] = {NAN, 0, 0, 0, INFINITY, 0};
  for (int64_t c = 0; c < 3; ++c) {
    VotesAndGaps tally{Votes(3, 0), c, Gaps(4, 0)};
    tally.add_copy(nothing, 2);
    EXPECT_EQ(tally.votes, Votes(3, 0));
    EXPECT_EQ(tally.gaps, (Gaps{0, 0, 0, 1}));
  }
}

TEST(GroupVotesTest, AGroupWithLogitsThatAreNotFiniteVotesForNobody) {
  const float logits[] = {0, 1, 5, NAN, 0, 1};  // classes 1, none, 1
  VotesAndGaps tally{Votes(2, 0), 1, Gaps(5, 0)};
  tally.add_copy(logits, 3);
  EXPECT_EQ(tally.votes, (Votes{0, 1}));
  EXPECT_EQ(tally.gaps, (Gaps{0, 1, 0, 0, 0}));  // 2 votes, less 0 + 1 for the lower class
}

TEST(GroupVotesTest, CopiesSafeFromMHaveGapsOfAtLeastTwiceM) {
  const Gaps gaps = {1, 2, 4, 8, 16, 32};  // gaps 0 to 4, then those below 0
  EXPECT_EQ(groups_of(gaps), 4);
  EXPECT_EQ(copies_safe_from(gaps, 0), 31);
  EXPECT_EQ(copies_safe_from(gaps, 1), 28);
  EXPECT_EQ(copies_safe_from(gaps, 2), 16);
  EXPECT_EQ(copies_safe_from(gaps, 3), 0);
  EXPECT_EQ(copies_safe_from(gaps, 1'000'000), 0);
}

TEST(GroupVotesTest, LevelsOfAllClaimsAddUpToAlphaAtMost) {
  EXPECT_EQ(level_of_each(0.001, 0), 0.001);
  for (int64_t m = 1; m < 1000; ++m) {
    const auto sum = static_cast<long double>(level_of_each(0.001, m)) * (m + 1);
    EXPECT_LE(sum, static_cast<long double>(0.001)) << m;
    EXPECT_GT(sum, 0.001L * (1 - 1e-15L)) << m;
  }
}

// An ensemble of nine linear classifiers of three classes on the plane.
class RandomEnsemble {
 public:
  static constexpr int64_t kGroups = 9, kClasses = 3;

  explicit RandomEnsemble(std::mt19937& random) {
    std::normal_distribution<double> normal;
    for (auto& w : weights_) w = normal(random);
    // So that most of the groups often agree on class 0 around the origin.
    for (int64_t g = 0; g < kGroups; ++g) weights_[9 * g + 2] += 1.5;
  }

  int64_t answer(int64_t g, double x, double y) const {
    std::array<double, kClasses> score;
    for (int64_t c = 0; c < kClasses; ++c) {
      const double* w = &weights_[9 * g + 3 * c];
      score[c] = w[0] * x + w[1] * y + w[2];
    }
    return std::max_element(score.begin(), score.end()) - score.begin();
  }

  Answers answers(double x, double y) const {
    Answers all;
    for (int64_t g = 0; g < kGroups; ++g) all.push_back(answer(g, x, y));
    return all;
  }

 private:
  std::array<double, 9 * kGroups> weights_;  // two slopes and a constant per class
};

struct Poison {
  uint32_t groups = 0;    // a bit each
  int64_t answer = 0;     // of these
  double ex = 0, ey = 0;  // perturbation
};

// Share of `n` copies with sigma = 1 that the poisoned ensemble answers by class c.
double share_of(const RandomEnsemble& f, const Poison& p, int64_t c, int64_t n,
                std::mt19937& random) {
  std::normal_distribution<double> normal;
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    Answers answers = f.answers(p.ex + normal(random), p.ey + normal(random));
    for (int64_t g = 0; g < RandomEnsemble::kGroups; ++g) {
      if (p.groups >> g & 1) answers[g] = p.answer;
    }
    count += majority(votes_of(answers, RandomEnsemble::kClasses)) == c;
  }
  return static_cast<double>(count) / static_cast<double>(n);
}

// The perturbation of this length and the m groups whose answer at it makes c the least probable,
// on 500 copies.
Poison worst_poison(const RandomEnsemble& f, int64_t c, int64_t m, double length,
                    std::mt19937& random) {
  constexpr int64_t kCopies = 500, kDirections = 12;
  std::normal_distribution<double> normal;
  Poison worst;
  int64_t fewest = kCopies + 1;
  for (int64_t d = 0; d < kDirections; ++d) {
    const double angle = 2 * M_PI * static_cast<double>(d) / kDirections;
    const double ex = length * std::cos(angle), ey = length * std::sin(angle);
    std::vector<Answers> copies;
    for (int64_t i = 0; i < kCopies; ++i) {
      copies.push_back(f.answers(ex + normal(random), ey + normal(random)));
    }
    for (uint32_t groups = 0; groups < 1u << RandomEnsemble::kGroups; ++groups) {
      if (std::popcount(groups) != m) continue;
      for (int64_t wrong = 0; wrong < RandomEnsemble::kClasses; ++wrong) {
        if (wrong == c) continue;
        int64_t count = 0;
        Votes votes(RandomEnsemble::kClasses);
        for (const Answers& answers : copies) {
          std::fill(votes.begin(), votes.end(), 0);
          for (int64_t g = 0; g < RandomEnsemble::kGroups; ++g) {
            ++votes[groups >> g & 1 ? wrong : answers[g]];
          }
          count += majority(votes) == c;
        }
        if (count < fewest) {
          fewest = count;
          worst = {groups, wrong, ex, ey};
        }
      }
    }
  }
  return worst;
}

// The theorem: 200 random ensembles, the worst m groups replaced, at 98% of the radius.
TEST(GroupVotesTest, TheWorstReplacementAndPerturbationLeaveTheClassItsMajority) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  constexpr int64_t kCopies = 20'000;
  int64_t certified = 0;
  double least = 1;
  for (int64_t i = 0; i < 200; ++i) {
    const RandomEnsemble f(random);
    const int64_t c = majority(votes_of(f.answers(0, 0), RandomEnsemble::kClasses)), m = 1 + i % 2;
    Gaps gaps(RandomEnsemble::kGroups + 2, 0);
    for (int64_t j = 0; j < kCopies; ++j) {
      const Votes votes = votes_of(f.answers(normal(random), normal(random)), 3);
      const int64_t gap = gap_of(votes, c);
      ++(gap < 0 ? gaps.back() : gaps[gap]);
    }
    const double p_lower = binomial_lower_bound(copies_safe_from(gaps, m), kCopies, 1e-4);
    if (!(p_lower > 0.5)) continue;
    ++certified;
    const double radius = kFloatNoise.radius(1, p_lower);
    const Poison worst = worst_poison(f, c, m, 0.98 * radius, random);
    const double share = share_of(f, worst, c, kCopies, random);
    EXPECT_GT(share, 0.5 - 5 * std::sqrt(0.25 / kCopies)) << "ensemble " << i << ", m = " << m;
    least = std::min(least, share);
  }
  EXPECT_GT(certified, 50);
  EXPECT_LT(least, 0.65);  // some are attacked to near the bound
}

// Simulated images at the null: gaps of n copies, of which P[gap >= 2 m] = p_m for given p.
class NullTest : public ::testing::Test {
 protected:
  static constexpr int64_t kImages = 100'000, kVotes = 100;

  // A gap of 2 m counts for 0 ... m and no more.
  Gaps draw(const std::vector<double>& p) {
    Gaps gaps(2 * p.size() + 1, 0);
    for (int64_t i = 0; i < kVotes; ++i) {
      const double u = uniform_(random_);
      const auto safe = std::partition_point(p.begin(), p.end(), [u](double q) { return u < q; });
      const auto m = safe - p.begin() - 1;
      ++(m < 0 ? gaps.back() : gaps[2 * m]);
    }
    return gaps;
  }

  double bound(int64_t count, double alpha) {
    const auto [found, is_new] = bounds_.try_emplace({count, alpha});
    if (is_new) found->second = binomial_lower_bound(count, kVotes, alpha);
    return found->second;
  }

  // A share of 10^5 images is above the probability by less than this.
  static double slack(double probability) {
    return 4 * std::sqrt(probability * (1 - probability) / kImages);
  }

  std::mt19937_64 random_{4};
  std::uniform_real_distribution<double> uniform_;
  std::map<std::pair<int64_t, double>, double> bounds_;
};

TEST_F(NullTest, OneNumberOfMaliciousClientsFailsAsOftenAsAlphaSays) {
  const std::vector<double> p = {0.9, 0.8, 0.7};
  constexpr double kAlpha = 0.05;
  std::vector<int64_t> wrong(p.size(), 0);
  for (int64_t i = 0; i < kImages; ++i) {
    const Gaps gaps = draw(p);
    for (size_t m = 0; m < p.size(); ++m) {
      wrong[m] += bound(copies_safe_from(gaps, static_cast<int64_t>(m)), kAlpha) > p[m];
    }
  }
  for (const int64_t count : wrong) {
    const double share = static_cast<double>(count) / kImages;
    EXPECT_LT(share, kAlpha + slack(kAlpha));
    EXPECT_GT(share, kAlpha / 3);  // counts are discrete, but the test could fail
  }
}

TEST_F(NullTest, AllNumbersAtOnceNeedTheSplitLevel) {
  std::vector<double> p;
  for (int64_t m = 0; m < 10; ++m) p.push_back(0.97 - 0.045 * static_cast<double>(m));
  constexpr double kAlpha = 0.05;
  const double split = level_of_each(kAlpha, 9);
  int64_t wrong = 0, wrong_without = 0;
  for (int64_t i = 0; i < kImages; ++i) {
    const Gaps gaps = draw(p);
    bool any = false, any_without = false;
    for (size_t m = 0; m < p.size(); ++m) {
      const int64_t count = copies_safe_from(gaps, static_cast<int64_t>(m));
      any = any || bound(count, split) > p[m];
      any_without = any_without || bound(count, kAlpha) > p[m];
    }
    wrong += any;
    wrong_without += any_without;
  }
  EXPECT_LT(static_cast<double>(wrong) / kImages, kAlpha + slack(kAlpha));
  EXPECT_GT(wrong, 0);
  EXPECT_GT(static_cast<double>(wrong_without) / kImages, 0.1);  // why alpha is split
}

// For one radius, needing q: p_0 is above q, all others are at q or just below it.
TEST_F(NullTest, TheLadderCostsAlphaOnce) {
  constexpr double kAlpha = 0.05, kRadius = 0.5, kSigma = 1;
  const double q = kFloatNoise.needed_probability(kSigma, kRadius);
  for (const std::vector<double>& p :
       {std::vector{0.8, q, q - 0.001, q - 0.002, q - 0.003}, {q, q - 0.02, q - 0.04}}) {
    const auto first_null =
        std::partition_point(p.begin(), p.end(), [q](double one) { return one > q; }) - p.begin();
    int64_t wrong = 0;
    std::map<std::vector<int64_t>, int64_t> known;  // by N_0, N_1, ...
    for (int64_t i = 0; i < kImages; ++i) {
      const Gaps gaps = draw(p);
      const auto [found, is_new] = known.try_emplace(gaps);
      if (is_new) {
        found->second = most_malicious(gaps, kRadius, kSigma, kAlpha, kFloatNoise).value_or(-1);
      }
      wrong += found->second >= first_null;
    }
    const double share = static_cast<double>(wrong) / kImages;
    EXPECT_LT(share, kAlpha + slack(kAlpha));
    EXPECT_GT(share, kAlpha / 3);
  }
}

TEST(GroupVotesTest, TheLadderStopsAtTheFirstNumberThatFails) {
  Gaps gaps(12, 0);  // 10 groups
  gaps[8] = 900;
  gaps[5] = 80;
  gaps.back() = 20;
  const auto most = [&](double radius) {
    return most_malicious(gaps, radius, 1, 0.001, kFloatNoise);
  };
  EXPECT_EQ(most(0.5), 4);             // 900 of 1000 have a gap of 8
  EXPECT_EQ(most(1.5), 2);             // 980 of at least 4
  EXPECT_EQ(most(2.5), std::nullopt);  // not even 980 are enough
}

}  // namespace
}  // namespace fedsmooth
