// The level and the power of verify's test, on tables whose law is known.
#include "fedsmooth/jobs/certification/plausibility.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>

#include "fedsmooth/jobs/verify.h"

namespace fedsmooth::jobs {
namespace {

constexpr int64_t kVotes = 1000;
constexpr double kAlpha = 0.001;

/// Makes tables of `images` rows and verifies each by `redrawn` of them.
class Simulation {
 public:
  /// `p_of` draws the probability of a row's class; `claimed` says how many votes a row claims that
  /// got `top`.
  Simulation(std::function<double(std::mt19937_64&)> p_of, std::function<int64_t(int64_t)> claimed)
      : p_of_(std::move(p_of)), claimed_(std::move(claimed)) {}

  double p_value(int64_t images, int64_t redrawn) {
    std::vector<CertificateRow> rows;
    std::vector<double> p;
    for (int64_t i = 0; i < images; ++i) {
      p.push_back(p_of_(random_));
      rows.push_back(row_of(i, claimed_(votes(p[i]))));
    }
    std::vector<double> p_values;
    for (const CertificateRow& row : choose_rows(rows, redrawn, random_())) {
      p_values.push_back(row_p_value(row, votes(p[row.index]), kVotes));
    }
    return table_p_value(p_values, /*stopped_early=*/false);
  }

 private:
  int64_t votes(double p) { return std::binomial_distribution<int64_t>(kVotes, p)(random_); }

  // Bounds cost more than anything else here, and few counts are different.
  CertificateRow row_of(int64_t index, int64_t top) {
    const auto [at, is_new] = certificates_.try_emplace(top);
    if (is_new) {
      at->second = certificate_from_counts({0, kVotes, top, kVotes - top}, 0.25, kAlpha,
                                           RadiusKind::kOneSided, kFloatNoise);
    }
    return {.index = index, .alpha = kAlpha, .sigma = 0.25, .certificate = at->second};
  }

  std::function<double(std::mt19937_64&)> p_of_;
  std::function<int64_t(int64_t)> claimed_;
  std::mt19937_64 random_{1};
  std::map<int64_t, Certificate> certificates_;
};

int64_t as_counted(int64_t top) { return top; }

// At p = 1/2 one honest row of a thousand is certified, with votes that are high by luck alone, so
// this is where choosing certified rows goes wrong. Of 1,000 tables at most 50 may have a p-value
// of at most 0.05, on average, and 1 of at most 0.001. A binomial law of mean 50 exceeds 80, and
// one of mean 1 exceeds 7, with a probability below 1e-4.
TEST(PlausibilityTest, HonestTablesFailNoMoreOftenThanTheyMay) {
  for (const double p : {0.5, 0.52}) {
    Simulation honest([&](auto&) { return p; }, as_counted);
    int64_t at_5_percent = 0, implausible = 0;
    for (int table = 0; table < 1000; ++table) {
      const double p_value = honest.p_value(/*images=*/1000, /*redrawn=*/10);
      at_5_percent += p_value <= 0.05 ? 1 : 0;
      implausible += p_value < kImplausible ? 1 : 0;
    }
    EXPECT_LE(at_5_percent, 80) << p;
    EXPECT_LE(implausible, 7) << p;
  }
}

// Tables of images of all kinds, a third of them abstained on, whose counts were raised by 15% of
// the votes: a standardised difference of 6.7 or more in every row that is not at its end.
TEST(PlausibilityTest, InflatedTablesAreFound) {
  Simulation inflated(
      [](std::mt19937_64& random) {
        return std::uniform_real_distribution<double>(0.3, 0.9)(random);
      },
      [](int64_t top) { return std::min(kVotes, top + 15 * kVotes / 100); });
  for (int table = 0; table < 50; ++table) EXPECT_LT(inflated.p_value(200, 10), kImplausible);
}

// Only rows that are certified are worth inflating. Here half of the rows are.
TEST(PlausibilityTest, TablesWithInflatedCertificatesAreFound) {
  Simulation inflated(
      [](std::mt19937_64& random) { return random() % 2 == 0 ? 0.3 : 0.6; },
      [](int64_t top) { return top > kVotes / 2 ? std::min(kVotes, top + kVotes / 5) : top; });
  int64_t found = 0;
  for (int table = 0; table < 200; ++table) found += inflated.p_value(200, 10) < kImplausible;
  // Missed if none of ten rows is one of these: with probability 0.001. Three tables of 200 are
  // missed with a probability of 0.001.
  EXPECT_GE(found, 198);
}

TEST(PlausibilityTest, ChoosesAmongAllRowsWithVotes) {
  std::vector<CertificateRow> rows(30);
  for (int64_t i = 0; i < 30; ++i) {
    rows[i].index = i;
    rows[i].certificate.counts = {0, i % 3 == 0 ? 0 : kVotes, i % 2 == 0 ? 400 : 900, 100};
    rows[i].certificate.predict = i % 2 == 0 ? kAbstain : 0;
  }
  const std::vector<CertificateRow> all = choose_rows(rows, 1000, 7);
  ASSERT_EQ(all.size(), 20U);
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].index, 3 * (i / 2) + 1 + i % 2);
  EXPECT_EQ(choose_rows(rows, 5, 7).size(), 5U);
}

// Votes that were stopped early and certified nothing have nothing that new votes could contradict.
TEST(PlausibilityTest, AnAbstentionOfVotesStoppedEarlyClaimsNothing) {
  CertificateRow row;
  row.noise = &kFloatNoise;
  row.rule = VoteRule::kRadii;
  row.certificate.counts = {0, 400, 180, 220};
  EXPECT_EQ(row_p_value(row, 0, 1000), 1.0);
}

}  // namespace
}  // namespace fedsmooth::jobs
