#include "fedsmooth/federated/objectives/scores/cross_entropy.h"

#include "tests/federated/objectives/scores.h"

namespace fedsmooth {
namespace {

TEST(CrossEntropyTest, IsTheSumOverTheCopies) {
  const Copies copies = some_copies(3, 5, {});
  double expected = 0;
  for (int i = 0; i < 3; ++i) {
    double sum = 0;
    for (int k = 0; k < 5; ++k) sum += std::exp(copies.z[5 * i + k]);
    expected += std::log(sum) - copies.z[5 * i + copies.y];
  }
  EXPECT_NEAR(scored<CrossEntropy>(copies).terms.fit, expected, 1e-12);
}

TEST(CrossEntropyTest, SatisfiesTheRulesOfEveryScore) {
  const Copies copies = some_copies(3, 5, {});
  expect_gradient_of_the_loss<CrossEntropy>(copies);
  expect_order_is_free<CrossEntropy>(copies, 0, 3);
  expect_finite_at_the_extremes<CrossEntropy>(copies);
  expect_float_is_near<CrossEntropy>(copies);
}

}  // namespace
}  // namespace fedsmooth
