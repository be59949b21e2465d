#include "fedsmooth/federated/objectives/scores/smooth_mix.h"

#include "tests/federated/objectives/scores.h"

namespace fedsmooth {
namespace {

// Three copies of an image, three mixed ones; y is ahead by `lead`.
Copies copies_with(double lead) {
  Copies copies = some_copies(6, 5, {.lambda = 5});
  copies.mix = 0.3;
  for (int i = 0; i < 6; ++i) copies.z[5 * i + copies.y] += lead;
  return copies;
}

TEST(SmoothMixTest, IsTheFormula) {
  const Copies copies = copies_with(2);
  std::vector<double> p(copies.z.size()), t(5, 0.3 / 5);
  double fit = 0, divergence = 0;
  for (int i = 0; i < 6; ++i) {
    double sum = 0;
    for (int k = 0; k < 5; ++k) sum += std::exp(copies.z[5 * i + k]);
    for (int k = 0; k < 5; ++k) p[5 * i + k] = std::exp(copies.z[5 * i + k]) / sum;
    if (i >= 3) continue;
    fit -= std::log(p[5 * i + copies.y]) / 3;
    for (int k = 0; k < 5; ++k) t[k] += 0.7 * p[5 * i + k] / 3;
  }
  for (int i = 3; i < 6; ++i) {
    for (int k = 0; k < 5; ++k) divergence += t[k] * std::log(t[k] / p[5 * i + k]) / 3;
  }
  const Terms found = scored<SmoothMix>(copies).terms;
  EXPECT_NEAR(found.fit, 6 * fit, 1e-12);
  EXPECT_NEAR(found.robust, 6 * 5 * divergence, 1e-11);
}

TEST(SmoothMixTest, OnlyImagesThatAreAnsweredRightAreMixed) {
  EXPECT_GT(scored<SmoothMix>(copies_with(2)).terms.robust, 0);
  EXPECT_EQ(scored<SmoothMix>(copies_with(-3)).terms.robust, 0);
}

TEST(SmoothMixTest, SatisfiesTheRulesOfEveryScore) {
  for (const double lead : {2.0, -3.0}) {
    const Copies copies = copies_with(lead);
    expect_gradient_of_the_loss<SmoothMix>(copies);
    expect_order_is_free<SmoothMix>(copies, 0, 3);
    expect_order_is_free<SmoothMix>(copies, 3, 3);
    expect_finite_at_the_extremes<SmoothMix>(copies);
    expect_float_is_near<SmoothMix>(copies, 1e-4);
  }
  Copies unmixed = copies_with(2);
  unmixed.mix = 0;
  expect_finite_at_the_extremes<SmoothMix>(unmixed);
}

}  // namespace
}  // namespace fedsmooth
