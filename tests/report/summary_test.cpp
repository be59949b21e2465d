#include "fedsmooth/report/summary.h"

#include <gtest/gtest.h>

#include <boost/math/distributions/binomial.hpp>

#include <cmath>

#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

CertificateRow row(int64_t label, int64_t predict, double radius, double alpha = 0.001) {
  CertificateRow made;
  made.noise = &kFloatNoise;
  made.label = label;
  made.alpha = alpha;
  made.certificate.predict = predict;
  made.certificate.radius = radius;
  made.certificate.counts.n = 1000;
  return made;
}

// Two correct, one wrong, one abstention.
std::vector<CertificateRow> four_rows() {
  return {row(0, 0, 0.5), row(0, 1, 3.0), row(1, kAbstain, 0), row(1, 1, 0.2)};
}

std::vector<CertificateRow> eight_of_ten() {
  std::vector<CertificateRow> rows(8, row(0, 0, 1));
  rows.resize(10, row(0, 1, 1));
  return rows;
}

TEST(SummaryTest, CertifiedAccuracyCountsTheRadiusItself) {
  EXPECT_EQ(certified_accuracy(four_rows(), 0.5), 0.25);
  EXPECT_EQ(certified_accuracy(four_rows(), std::nextafter(0.5, 1)), 0);
}

TEST(SummaryTest, AbstentionsAndMistakesStayInTheDenominator) {
  EXPECT_EQ(certified_accuracy(four_rows(), 0), 0.5);
}

TEST(SummaryTest, IntervalIsClopperPearson) {
  const Proportion eight = accuracy_at(eight_of_ten(), 1).accuracy;
  EXPECT_DOUBLE_EQ(eight.value, 0.8);
  EXPECT_NEAR(eight.low, 0.4439045, 1e-6);
  EXPECT_NEAR(eight.high, 0.9747893, 1e-6);
}

TEST(SummaryTest, IntervalReachesTheEndsWithNoneAndWithAll) {
  // One-sided there: 1 - 0.025^(1/10).
  const Proportion none = accuracy_at(std::vector(10, row(0, 1, 1)), 0).accuracy;
  EXPECT_EQ(none.low, 0);
  EXPECT_NEAR(none.high, 1 - std::pow(0.025, 0.1), 1e-12);
  const Proportion all = accuracy_at(std::vector(10, row(0, 0, 1)), 0).accuracy;
  EXPECT_NEAR(all.low, std::pow(0.025, 0.1), 1e-12);
  EXPECT_EQ(all.high, 1);
}

TEST(SummaryTest, HighProbabilityBoundMatchesTheHandComputedValue) {
  // ln 1000 = 6.907755; 0.75 - 0.001 - sqrt(2 * 0.000999 * 6.907755 / 500) - 6.907755 / 1500
  std::vector<CertificateRow> rows(375, row(0, 0, 1));
  rows.resize(500, row(0, 1, 1));
  EXPECT_NEAR(accuracy_at(rows, 0).high_probability.value(), 0.7391409, 1e-6);
}

TEST(SummaryTest, HighProbabilityBoundUsesTheLargestAlphaAndIsNeverNegative) {
  std::vector<CertificateRow> rows(500, row(0, 0, 1));
  rows[17].alpha = 0.01;
  // 1 - 0.01 - sqrt(2 * 0.0099 * 6.907755 / 500) - 6.907755 / 1500
  EXPECT_NEAR(accuracy_at(rows, 0).high_probability.value(), 0.9688556, 1e-6);
  EXPECT_EQ(accuracy_at(rows, 2).high_probability, 0);
}

// Wrong certificates are as rare as a binomial number with probability alpha.
TEST(SummaryTest, HighProbabilityBoundFailsNoMoreOftenThanItSays) {
  for (const int images : {100, 10'000, 100'000}) {
    for (const double alpha : {0.001, 0.01}) {
      const std::vector<CertificateRow> rows(images, row(0, 0, 1, alpha));
      const double allowed =
          std::floor(images * (1 - accuracy_at(rows, 0).high_probability.value()));
      const boost::math::binomial wrong(images, alpha);
      EXPECT_LE(cdf(complement(wrong, allowed)), 0.001) << images << " " << alpha;
    }
  }
}

// Errors of images with the same draws may come together: Markov's inequality is what is left.
TEST(SummaryTest, HighProbabilityBoundDoesNotCountOnIndependenceWithABank) {
  std::vector<CertificateRow> rows(1000, row(0, 0, 1, 1e-4));
  EXPECT_GT(accuracy_at(rows, 1).high_probability, 0.99);
  for (CertificateRow& r : rows) r.shared = true;
  EXPECT_NEAR(accuracy_at(rows, 1).high_probability.value(), 1 - 1e-4 / 1e-3, 1e-12);
}

// All of 100,000 votes at alpha = 0.001 and sigma = 0.25 certify 0.9529.
TEST(SummaryTest, KnowsWhichRadiiAreBeyondAllVotes) {
  std::vector<CertificateRow> rows(3, row(0, 0, 0.1));
  for (CertificateRow& r : rows) r.sigma = 0.25;
  rows[1].certificate.counts.n = 100'000;
  EXPECT_TRUE(can_certify({"run", {}, rows}, 0.95));
  EXPECT_FALSE(can_certify({"run", {}, rows}, 0.96));
  RunRecord linf{"run", {}, rows};
  linf.norm = Norm::kLinf;
  linf.values = 4;
  EXPECT_TRUE(can_certify(linf, 0.95 / 2));
  EXPECT_FALSE(can_certify(linf, 0.96 / 2));
  rows[2].certificate.counts.n = 100'000;
  rows[2].sigma = 0.5;
  EXPECT_TRUE(can_certify({"run", {}, rows}, 0.96));
}

// As its authors state it: 0 at a radius that none reaches.
TEST(SummaryTest, OfAPublishedTableOnlyWhatItStatesIsKnown) {
  std::vector<CertificateRow> rows = four_rows();
  for (CertificateRow& r : rows) {
    r.published = true;
    r.alpha = 0;
    r.certificate.counts.n = 0;
  }
  EXPECT_EQ(certified_accuracy(rows, 0.2), 0.5);
  EXPECT_EQ(certified_accuracy(rows, 0.5), 0.25);
  EXPECT_TRUE(can_certify({"run", {}, rows}, 9));
  EXPECT_FALSE(accuracy_at(rows, 0).high_probability);
  const Summary summary = summarize(rows);
  EXPECT_EQ(summary.average_certified_radius, (0.5 + 0.2) / 4);
  EXPECT_EQ(summary.abstained.value().value, 0.25);
}

TEST(SummaryTest, RadiiOfATableAreTheUsualOnesOfTheNorm) {
  EXPECT_EQ(standard_radii(0.6, Norm::kL2), (std::vector<double>{0, 0.25, 0.5}));
  EXPECT_EQ(standard_radii(2.0 / 255, Norm::kLinf), (std::vector<double>{0, 1.0 / 255, 2.0 / 255}));
  EXPECT_EQ(standard_radii(2, Norm::kL1, 4), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(standard_radii(0, Norm::kL2), (std::vector<double>{0}));
}

TEST(SummaryTest, WhatWasNotEstimatedIsNotCertified) {
  std::vector<CertificateRow> rows = four_rows();
  rows[1].certificate.counts.n = 0;
  rows[1].certificate.radius = 0;
  EXPECT_EQ(summarize(rows).wrong_but_certified.has_value(), false);
}

TEST(SummaryTest, TableStopsAtTheLargestCorrectRadius) {
  const Summary summary = summarize(four_rows());  // the wrong answer has radius 3
  ASSERT_EQ(summary.table.size(), 3);
  EXPECT_EQ(summary.table[0].radius, 0);
  EXPECT_EQ(summary.table[0].accuracy.value, 0.5);
  EXPECT_EQ(summary.table[1].radius, 0.25);
  EXPECT_EQ(summary.table[1].accuracy.value, 0.25);
  EXPECT_EQ(summary.table[2].radius, 0.5);
  EXPECT_EQ(summary.table[2].accuracy.value, 0.25);
}

TEST(SummaryTest, TableHasRadiusZeroEvenIfNothingIsCorrect) {
  const Summary summary = summarize({row(0, 1, 3)});
  ASSERT_EQ(summary.table.size(), 1);
  EXPECT_EQ(summary.table[0].accuracy.value, 0);
}

TEST(SummaryTest, TableStaysShortWhateverTheRadius) {
  EXPECT_EQ(summarize({row(0, 0, 3.81)}).table.back().radius, 3.75);
  EXPECT_EQ(summarize({row(0, 0, 3.81)}).table.size(), 16);
  EXPECT_EQ(summarize({row(0, 0, 5)}).table.at(1).radius, 0.5);
  EXPECT_LE(summarize({row(0, 0, 1e300)}).table.size(), 20);
}

TEST(SummaryTest, CountsAbstentionsAndWrongButCertified) {
  const Summary summary = summarize(four_rows());
  EXPECT_EQ(summary.images, 4);
  EXPECT_EQ(summary.abstained->value, 0.25);
  EXPECT_EQ(summary.wrong_but_certified->value, 0.25);
  EXPECT_NEAR(summary.abstained->high, 0.8058796, 1e-6);  // 1 of 4
}

TEST(SummaryTest, AverageCertifiedRadiusIsOverAllRows) {
  EXPECT_DOUBLE_EQ(summarize(four_rows()).average_certified_radius, (0.5 + 0.2) / 4);
}

TEST(SummaryTest, ConstantClassifierShowsAsOneDistinctPrediction) {
  const Summary summary = summarize({row(0, 2, 1), row(1, 2, 1), row(2, 2, 1), row(2, -1, 0)});
  EXPECT_EQ(summary.distinct_predictions, 1);
  EXPECT_EQ(summary.distinct_labels, 3);
}

TEST(SummaryTest, ClassesAreCountedByLabelAndByPrediction) {
  const std::vector<ClassSummary> classes = summarize(four_rows()).classes;
  ASSERT_EQ(classes.size(), 2);
  EXPECT_EQ(classes[0].images, 2);
  EXPECT_EQ(classes[0].predicted, 1);
  EXPECT_EQ(classes[0].correct, 0.5);
  EXPECT_EQ(classes[0].abstained, 0);
  EXPECT_EQ(classes[0].mean_radius, 0.25);
  EXPECT_EQ(classes[1].images, 2);
  EXPECT_EQ(classes[1].predicted, 2);
  EXPECT_EQ(classes[1].correct, 0.5);
  EXPECT_EQ(classes[1].abstained, 0.5);
  EXPECT_EQ(classes[1].mean_radius, 0.1);
}

TEST(SummaryTest, ClassThatIsOnlyPredictedHasNoImages) {
  const std::vector<ClassSummary> classes = summarize({row(0, 4, 1)}).classes;
  ASSERT_EQ(classes.size(), 5);
  EXPECT_EQ(classes[4].images, 0);
  EXPECT_EQ(classes[4].predicted, 1);
  EXPECT_EQ(classes[4].correct, 0);
}

TEST(SummaryTest, MedianOfAnEvenNumberIsTheMeanOfTheMiddleTwo) {
  std::vector<CertificateRow> rows(4, row(0, 0, 1));
  for (size_t i = 0; i < 4; ++i) rows[i].seconds = std::vector<double>{9, 1, 2, 100}[i];
  EXPECT_EQ(summarize(rows).median_seconds, 5.5);
  rows.pop_back();
  EXPECT_EQ(summarize(rows).median_seconds, 2);
}

TEST(SummaryTest, CurveAgreesWithCertifiedAccuracyAtAndBesideEveryStep) {
  const std::vector<CertificateRow> rows = {row(0, 0, 0.5), row(0, 0, 0.5), row(0, 0, 0),
                                            row(0, 0, 0.7), row(0, 1, 0.9), row(0, -1, 0)};
  const std::vector<CurvePoint> curve = accuracy_curve(rows);
  ASSERT_EQ(curve.size(), 3);
  EXPECT_EQ(curve[0].radius, 0);
  EXPECT_EQ(curve[1].radius, 0.5);
  EXPECT_EQ(curve[2].radius, 0.7);
  for (size_t i = 0; i < curve.size(); ++i) {
    EXPECT_EQ(curve[i].accuracy, certified_accuracy(rows, curve[i].radius));
    const double next = i + 1 < curve.size() ? curve[i + 1].accuracy : 0;
    EXPECT_EQ(next, certified_accuracy(rows, std::nextafter(curve[i].radius, 1)));
  }
}

TEST(SummaryTest, RefusesAnEmptySet) {
  EXPECT_THROW(certified_accuracy({}, 0), Error);
  EXPECT_THROW(accuracy_at({}, 0), Error);
  EXPECT_THROW(summarize({}), Error);
  EXPECT_THROW(accuracy_curve({}), Error);
}

}  // namespace
}  // namespace fedsmooth
