#include "fedsmooth/federated/objectives/scores/cat_rs.h"

#include "tests/federated/objectives/scores.h"

namespace fedsmooth {
namespace {

// Four copies, four moved ones. The first `right` copies answer y.
Copies copies_with(int right, double draw) {
  Copies copies = some_copies(8, 5, {.lambda = 1});
  copies.draw = draw;
  copies.target = {0.1, 0.7, 0.2, 0, 0};
  for (int i = 0; i < 4; ++i) copies.z[5 * i + copies.y] += i < right ? 8 : -8;
  return copies;
}

// How many of the first four rows have a gradient.
int kept(const Scored<double>& scored) {
  int rows = 0;
  for (int i = 0; i < 4; ++i) {
    const auto row = scored.gradient.begin() + 5 * i;
    rows += std::any_of(row, row + 5, [](double g) { return g != 0; });
  }
  return rows;
}

TEST(CatRsTest, ABinomialDrawDecidesHowManyCopiesCount) {
  // Binomial(4, 1/2) has the distribution function 1/16, 5/16, 11/16, 15/16, 1.
  for (const auto& [draw, expected] :
       {std::pair(0.01, 1), {0.2, 1}, {0.4, 2}, {0.8, 3}, {0.95, 4}}) {
    EXPECT_EQ(kept(scored<CatRs>(copies_with(2, draw))), expected) << draw;
  }
  EXPECT_EQ(kept(scored<CatRs>(copies_with(0, 0.99))), 1);
  EXPECT_EQ(kept(scored<CatRs>(copies_with(4, 0.01))), 4);
}

TEST(CatRsTest, TheSmallestLossesCount) {
  const Copies copies = copies_with(2, 0.4);
  const Scored<double> found = scored<CatRs>(copies);
  std::vector<double> losses;
  for (int i = 0; i < 4; ++i) {
    double sum = 0;
    for (int k = 0; k < 5; ++k) sum += std::exp(copies.z[5 * i + k]);
    losses.push_back(std::log(sum) - copies.z[5 * i + copies.y]);
  }
  std::sort(losses.begin(), losses.end());
  EXPECT_NEAR(found.terms.fit, 8 * (losses[0] + losses[1]) / 4, 1e-12);
  EXPECT_EQ(found.terms.robust, 0);
}

TEST(CatRsTest, TheWorstMovedCopyCountsWhereAllCopiesCount) {
  const Copies copies = copies_with(4, 0.5);
  double worst = 0;
  for (int i = 4; i < 8; ++i) {
    double sum = 0, divergence = 0;
    for (int k = 0; k < 5; ++k) sum += std::exp(copies.z[5 * i + k]);
    for (int k = 0; k < 3; ++k) {
      const double p = std::exp(copies.z[5 * i + k]) / sum;
      divergence += copies.target[k] * std::log(copies.target[k] / p);
    }
    worst = std::max(worst, divergence);
  }
  EXPECT_NEAR(scored<CatRs>(copies).terms.robust, 8 * worst, 1e-12);
}

TEST(CatRsTest, SatisfiesTheRulesOfEveryScore) {
  for (const int right : {0, 2, 4}) {
    const Copies copies = copies_with(right, 0.4);
    expect_gradient_of_the_loss<CatRs>(copies);
    expect_order_is_free<CatRs>(copies, 0, 4);
    expect_order_is_free<CatRs>(copies, 4, 4);
    expect_finite_at_the_extremes<CatRs>(copies);
    expect_float_is_near<CatRs>(copies);
  }
}

}  // namespace
}  // namespace fedsmooth
