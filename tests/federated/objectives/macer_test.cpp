#include "fedsmooth/federated/objectives/scores/macer.h"

#include <boost/math/distributions/normal.hpp>

#include "tests/federated/objectives/scores.h"

namespace fedsmooth {
namespace {

constexpr double kSigma = 0.5;

// Small logits, as sharpened ones are 16 times as large, with y ahead by `lead`.
Copies copies_with(double lead, double lambda = 6) {
  Copies copies = some_copies(4, 6, {.lambda = lambda, .sigma = kSigma}, /*scale=*/0.1);
  for (int i = 0; i < 4; ++i) copies.z[6 * i + copies.y] += lead;
  return copies;
}

TEST(MacerTest, IsTheFormula) {
  const Copies copies = copies_with(0.2);
  std::vector<double> s(6), sharp(6);
  for (int i = 0; i < 4; ++i) {
    double sum = 0, sharp_sum = 0;
    for (int k = 0; k < 6; ++k) {
      sum += std::exp(copies.z[6 * i + k]);
      sharp_sum += std::exp(16 * copies.z[6 * i + k]);
    }
    for (int k = 0; k < 6; ++k) {
      s[k] += std::exp(copies.z[6 * i + k]) / sum / 4;
      sharp[k] += std::exp(16 * copies.z[6 * i + k]) / sharp_sum / 4;
    }
  }
  const double p1 = sharp[copies.y];
  sharp[copies.y] = 0;
  const double p2 = *std::max_element(sharp.begin(), sharp.end());
  ASSERT_GT(p1, p2);
  const boost::math::normal normal;
  const double h = 8 + quantile(normal, p2) - quantile(normal, p1);
  const Terms found = scored<Macer>(copies).terms;
  EXPECT_NEAR(found.fit, -4 * std::log(s[copies.y] + 1e-10), 1e-12);
  EXPECT_NEAR(found.robust, 4 * 6 * kSigma / 2 * h, 1e-9);
}

TEST(MacerTest, TheRadiusCountsForRightAnswersWithinTheMargin) {
  EXPECT_GT(scored<Macer>(copies_with(0.2)).terms.robust, 0);
  EXPECT_EQ(scored<Macer>(copies_with(-0.5)).terms.robust, 0);  // wrong
  EXPECT_EQ(scored<Macer>(copies_with(2)).terms.robust, 0);     // far
}

TEST(MacerTest, WithoutItsWeightItIsTheLogarithmOfTheMean) {
  const Copies copies = copies_with(0.2, /*lambda=*/0);
  const Scored<double> found = scored<Macer>(copies);
  EXPECT_EQ(found.terms.robust, 0);
  expect_gradient_of_the_loss<Macer>(copies);
}

TEST(MacerTest, SatisfiesTheRulesOfEveryScore) {
  for (const double lead : {0.2, -0.5, 2.0}) {
    const Copies copies = copies_with(lead);
    expect_gradient_of_the_loss<Macer>(copies);
    expect_order_is_free<Macer>(copies, 0, 4);
    expect_finite_at_the_extremes<Macer>(copies);
    expect_float_is_near<Macer>(copies, 1e-3);  // 16 lambda / phi times the roundings
  }
}

}  // namespace
}  // namespace fedsmooth
