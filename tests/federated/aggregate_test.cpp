#include "fedsmooth/federated/aggregate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/arrays.h"
#include "tests/federated/small_training.h"

namespace fedsmooth {
namespace {

// Fixed point keeps the bits of every weight of at least 2^-27.
TEST(AggregateTest, TheAverageOfOneClientKeepsItsBits) {
  const LocalTask task = small_task(Method::kSmoothAdv);
  const Partition p = partition(PartitionKind::kWhole, 1);
  const Weights global = start().global;
  const auto passes = reference_passes(task.network);
  const Update update = local_train(task, *passes, global, 0, p.images(0), 0);
  FixedPointSum sum;
  sum.add(update.weights, 1.0);
  const Weights average = sum.average(global);
  for (size_t i = 0; i < average.size(); ++i) {
    const std::vector<float> found = values_of(average[i]), sent = values_of(update.weights[i]);
    ASSERT_EQ(found.size(), sent.size());
    for (size_t j = 0; j < sent.size(); ++j) {
      if (std::abs(sent[j]) < 0x1p-27f) continue;
      EXPECT_EQ(found[j], sent[j]) << i << " " << j;
    }
  }
}

TEST(AggregateTest, TheAverageFollowsTheNumberOfImages) {
  const Weights a = {Array::full({2}, 1)}, b = {Array::full({2}, 4)};
  FixedPointSum sum;
  sum.add(a, 0.75);
  sum.add(b, 0.25);
  EXPECT_EQ(sum.kept_share(), 1.0);
  EXPECT_TRUE(same_bits(sum.average(a)[0], Array::full({2}, 1.75f)));
}

TEST(AggregateTest, ABrokenClientIsLeftOutAndCounted) {
  const Weights good = {Array::full({2}, 1.5f)};
  for (const float bad : {NAN, INFINITY, 5000.0f}) {
    FixedPointSum sum;
    EXPECT_TRUE(sum.add(good, 0.5));
    EXPECT_FALSE(sum.add({Array::of({2}, {1.0f, bad})}, 0.5));
    EXPECT_EQ(sum.dropped(), 1);
    EXPECT_EQ(sum.kept_share(), 0.5);
    EXPECT_TRUE(same_bits(sum.average(good)[0], good[0]));
  }
}

}  // namespace
}  // namespace fedsmooth
