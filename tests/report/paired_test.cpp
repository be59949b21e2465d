#include "fedsmooth/report/paired.h"

#include <gtest/gtest.h>

#include <boost/math/distributions/binomial.hpp>

#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

CertificateRow row(int64_t index, int64_t label, int64_t predict, double radius) {
  CertificateRow made;
  made.noise = &kFloatNoise;
  made.index = index;
  made.label = label;
  made.certificate.predict = predict;
  made.certificate.radius = radius;
  made.certificate.counts.n = 1000;
  return made;
}

// Certified at the radius, wrong with it, or an abstention.
CertificateRow right(int64_t index, double radius) { return row(index, 1, 1, radius); }
CertificateRow wrong(int64_t index, double radius) { return row(index, 1, 0, radius); }
CertificateRow abstained(int64_t index) { return row(index, 1, kAbstain, 0); }

RunRecord run_of(std::vector<CertificateRow> rows) { return {"run", {}, std::move(rows)}; }

std::string refusal(RunRecord a, RunRecord b) {
  try {
    keep_common_images(a, b);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

// By hand. Radii of A and B on images 0 to 5, "-" where it is wrong or abstains:
//   A  0.5   0.25  -     0.3   -     0
//   B  0.25  0.5   0.1   -     -     0
TEST(PairedTest, TableMatchesTheHandComputedOne) {
  const RunRecord a = run_of(
      {right(0, 0.5), right(1, 0.25), wrong(2, 0.9), right(3, 0.3), abstained(4), right(5, 0)});
  const RunRecord b = run_of(
      {right(0, 0.25), right(1, 0.5), right(2, 0.1), abstained(3), wrong(4, 2), right(5, 0)});
  const PairedComparison found = compare_paired(a, b);
  EXPECT_EQ(found.images, 6);
  ASSERT_EQ(found.table.size(), 3U);  // 0, 0.25, 0.5: a wrong answer's radius does not count
  const PairedAtRadius& zero = found.table[0];
  EXPECT_EQ(zero.both, 3);  // images 0, 1 and 5
  EXPECT_EQ(zero.only_a, 1);
  EXPECT_EQ(zero.only_b, 1);
  EXPECT_DOUBLE_EQ(zero.a, 4.0 / 6);
  EXPECT_DOUBLE_EQ(zero.b, 4.0 / 6);
  EXPECT_EQ(zero.difference.value, 0);
  const PairedAtRadius& quarter = found.table[1];
  EXPECT_EQ(quarter.both, 2);  // a radius counts at itself
  EXPECT_EQ(quarter.only_a, 1);
  EXPECT_EQ(quarter.only_b, 0);
  EXPECT_DOUBLE_EQ(quarter.difference.value, 1.0 / 6);
  const PairedAtRadius& half = found.table[2];
  EXPECT_EQ(half.both, 0);
  EXPECT_EQ(half.only_a, 1);
  EXPECT_EQ(half.only_b, 1);
  EXPECT_DOUBLE_EQ(found.acr_a, (0.5 + 0.25 + 0.3) / 6);
  EXPECT_DOUBLE_EQ(found.acr_b, (0.25 + 0.5 + 0.1) / 6);
  EXPECT_FALSE(found.acr);  // five images differ
}

TEST(PairedTest, TheSameTableTwiceIsATieEverywhere) {
  const RunRecord a = run_of({right(0, 0.5), abstained(1), wrong(2, 1), right(3, 0.1)});
  const PairedComparison found = compare_paired(a, a);
  for (const PairedAtRadius& at : found.table) {
    EXPECT_EQ(at.difference.value, 0);
    EXPECT_EQ(at.only_a + at.only_b, 0);
    EXPECT_LT(at.difference.low, 0);
    EXPECT_GT(at.difference.high, 0);
  }
}

TEST(PairedTest, OnlyImagesThatBothHaveCountInTheOrderOfA) {
  RunRecord a = run_of({right(4, 0.4), right(2, 0.2), right(9, 0.9)});
  RunRecord b = run_of({right(2, 0.1), right(5, 0.5), right(4, 0.3)});
  keep_common_images(a, b);
  ASSERT_EQ(a.rows.size(), 2U);
  EXPECT_EQ(a.rows[0].index, 4);
  EXPECT_EQ(b.rows[0].index, 4);
  EXPECT_EQ(a.rows[1].certificate.radius, 0.2);
  EXPECT_EQ(b.rows[1].certificate.radius, 0.1);
}

TEST(PairedTest, WhatIsNotTheSameImagesIsRefused) {
  EXPECT_EQ(refusal(run_of({right(0, 1)}), run_of({right(1, 1)})),
            "compare: run and run have no image in common");
  EXPECT_EQ(refusal(run_of({right(0, 1), row(7, 3, 3, 1)}), run_of({row(7, 5, 5, 1)})),
            "compare: image 7 has label 3 in A and 5 in B; other data, or another order");
  RunRecord small = run_of({right(0, 1)}), large = run_of({right(0, 1)});
  small.values = 784;
  large.values = 3072;
  EXPECT_EQ(refusal(small, large),
            "compare: images of 784 values in A and of 3072 in B are not the same images");
  large.values = 0;  // not known
  EXPECT_EQ(refusal(small, large), "accepted");
}

// As tools/compare_runs.py gives them: Student's t with McNemar's variance, (40 - 20^2 / 400) /
// (400 * 399) in the first.
TEST(PairedTest, IntervalsOfManyAreByStudentsT) {
  const Difference some = paired_difference(30, 10, 400);
  EXPECT_FALSE(some.exact);
  EXPECT_DOUBLE_EQ(some.value, 0.05);
  EXPECT_NEAR(some.low, 0.019268531554, 1e-9);
  EXPECT_NEAR(some.high, 0.080731468446, 1e-9);
  const Difference many = paired_difference(400, 300, 10'000);
  EXPECT_NEAR(many.low, 0.004817241548, 1e-9);
  EXPECT_NEAR(many.high, 0.015182758452, 1e-9);
}

// Each end is a Clopper-Pearson bound at 97.5%.
TEST(PairedTest, IntervalsOfFewAreExactAndContainZero) {
  const Difference few = paired_difference(3, 1, 400);
  EXPECT_TRUE(few.exact);
  EXPECT_DOUBLE_EQ(few.value, 0.005);
  EXPECT_NEAR(few.low, -0.013849769962, 1e-9);
  EXPECT_NEAR(few.high, 0.021760668514, 1e-9);
  const Difference none = paired_difference(0, 0, 7);
  EXPECT_NEAR(none.high, 0.409616397225, 1e-9);
  EXPECT_EQ(none.low, -none.high);
  EXPECT_TRUE(paired_difference(12, 0, 12).exact);  // no variance to go by
  EXPECT_EQ(paired_difference(12, 0, 12).high, 1);
}

// Summed over all outcomes for 200 images: the interval holds the true difference in at
// least 92.5%.
TEST(PairedTest, IntervalsCover) {
  constexpr int64_t kImages = 200;
  for (const auto& [p_a, p_b] : {std::pair{0.02, 0.01}, {0.1, 0.02}, {0.08, 0.08}}) {
    const boost::math::binomial only_a(kImages, p_a);
    double covered = 0;
    for (int64_t a = 0; a <= kImages / 2; ++a) {
      const boost::math::binomial only_b(static_cast<double>(kImages - a), p_b / (1 - p_a));
      for (int64_t b = 0; b <= kImages / 2; ++b) {
        const Difference d = paired_difference(a, b, kImages);
        if (d.low <= p_a - p_b && p_a - p_b <= d.high) {
          covered += pdf(only_a, static_cast<double>(a)) * pdf(only_b, static_cast<double>(b));
        }
      }
    }
    EXPECT_GE(covered, 0.925) << p_a << " " << p_b;
  }
}

// Twelve of twenty images differ, by 0, 0.1, ..., 1.1; eight are alike. t(19) = 2.093.
TEST(PairedTest, AverageRadiusHasAPairedInterval) {
  std::vector<CertificateRow> rows_a, rows_b;
  for (int64_t i = 0; i < 20; ++i) {
    rows_a.push_back(right(i, i < 12 ? 0.5 + 0.1 * static_cast<double>(i) : 0.5));
    rows_b.push_back(right(i, 0.5));
  }
  const PairedComparison found = compare_paired(run_of(rows_a), run_of(rows_b));
  ASSERT_TRUE(found.acr);
  EXPECT_NEAR(found.acr->value, 0.33, 1e-12);
  EXPECT_NEAR(found.acr->low, 0.147724033587, 1e-9);
  EXPECT_NEAR(found.acr->high, 0.512275966413, 1e-9);
  EXPECT_NEAR(found.acr_a - found.acr_b, 0.33, 1e-12);
}

}  // namespace
}  // namespace fedsmooth
