#include "fedsmooth/federated/objectives/scores/stability.h"

#include "tests/federated/objectives/scores.h"

namespace fedsmooth {
namespace {

TEST(StabilityTest, IsTheFormula) {
  const Copies copies = some_copies(3, 5, {.lambda = 2});  // the image and two noises
  std::vector<double> p(copies.z.size());
  for (int i = 0; i < 3; ++i) {
    double sum = 0;
    for (int k = 0; k < 5; ++k) sum += std::exp(copies.z[5 * i + k]);
    for (int k = 0; k < 5; ++k) p[5 * i + k] = std::exp(copies.z[5 * i + k]) / sum;
  }
  double cross = 0;
  for (int i = 1; i < 3; ++i) {
    for (int k = 0; k < 5; ++k) cross -= p[k] * std::log(p[5 * i + k]) / 2;
  }
  const Terms found = scored<Stability>(copies).terms;
  EXPECT_NEAR(found.fit, -3 * std::log(p[copies.y]), 1e-12);
  EXPECT_NEAR(found.robust, 3 * 2 * cross, 1e-12);
}

TEST(StabilityTest, SatisfiesTheRulesOfEveryScore) {
  for (const int count : {2, 5}) {
    const Copies copies = some_copies(count, 6, {.lambda = 2});
    expect_gradient_of_the_loss<Stability>(copies);
    expect_order_is_free<Stability>(copies, 1, count - 1);
    expect_finite_at_the_extremes<Stability>(copies);
    expect_float_is_near<Stability>(copies);
  }
}

}  // namespace
}  // namespace fedsmooth
