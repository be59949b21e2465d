#include "fedsmooth/federated/objectives/scores/consistency.h"

#include "fedsmooth/federated/objectives/scores/cross_entropy.h"
#include "tests/federated/objectives/scores.h"

namespace fedsmooth {
namespace {

// The formula as it is printed, term by term.
Terms by_definition(const Copies& c) {
  std::vector<double> p(c.z.size()), s(c.classes);
  Terms terms;
  for (int i = 0; i < c.count; ++i) {
    double sum = 0;
    for (int k = 0; k < c.classes; ++k) sum += std::exp(c.z[i * c.classes + k]);
    for (int k = 0; k < c.classes; ++k) {
      p[i * c.classes + k] = std::exp(c.z[i * c.classes + k]) / sum;
      s[k] += p[i * c.classes + k] / c.count;
    }
    terms.fit -= std::log(p[i * c.classes + c.y]);
  }
  for (int k = 0; k < c.classes; ++k) {
    for (int i = 0; i < c.count; ++i) {
      terms.robust += c.weights.lambda * s[k] * std::log(s[k] / p[i * c.classes + k]);
    }
    terms.entropy -= c.weights.eta * c.count * s[k] * std::log(s[k]);
  }
  return terms;
}

TEST(ConsistencyTest, IsTheFormula) {
  const Copies copies = some_copies(4, 6, {20, 0.5});
  const Terms found = scored<Consistency>(copies).terms, expected = by_definition(copies);
  EXPECT_NEAR(found.fit, expected.fit, 1e-12);
  EXPECT_NEAR(found.robust, expected.robust, 1e-11);
  EXPECT_NEAR(found.entropy, expected.entropy, 1e-12);
}

TEST(ConsistencyTest, SatisfiesTheRulesOfEveryScore) {
  for (const int count : {1, 2, 4}) {
    const Copies copies = some_copies(count, 6, {20, 0.5});
    expect_gradient_of_the_loss<Consistency>(copies);
    expect_order_is_free<Consistency>(copies, 0, count);
    expect_finite_at_the_extremes<Consistency>(copies);
    expect_float_is_near<Consistency>(copies, 1e-4);  // lambda times the roundings
  }
}

TEST(ConsistencyTest, CopiesThatAgreeCostNothing) {
  Copies copies = some_copies(2, 6, {20, 0});
  std::copy_n(copies.z.begin(), 6, copies.z.begin() + 6);
  EXPECT_NEAR(scored<Consistency>(copies).terms.robust, 0, 1e-14);
}

TEST(ConsistencyTest, WithoutItsWeightsItIsCrossEntropyToTheBit) {
  for (const double scale : {0.1, 3.0, 40.0}) {
    const Copies copies = some_copies(3, 10, {0, 0}, scale);
    EXPECT_EQ(scored<Consistency>(copies).gradient, scored<CrossEntropy>(copies).gradient);
    EXPECT_EQ(scored<Consistency>(copies).loss(), scored<CrossEntropy>(copies).loss());
    EXPECT_EQ((scored<Consistency, float>(copies).gradient),
              (scored<CrossEntropy, float>(copies).gradient));
  }
}

}  // namespace
}  // namespace fedsmooth
