#include "fedsmooth/federated/aggregate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fedsmooth/federated/reductions/reductions.h"
#include "tests/arrays.h"
#include "tests/federated/small_training.h"

namespace fedsmooth {
namespace {

// Of its tensors the third and fourth are running statistics.
const Network kNormed{"normed", {2, 3, 3}, {{Layer::Kind::kBatchNorm, "norm"}}};

Weights normed(float trained, float statistic) {
  return {Array::full({2}, trained), Array::full({2}, -trained), Array::full({2}, statistic),
          Array::full({2}, std::fabs(statistic))};
}

// Fixed point keeps the bits of every weight of at least 2^-27.
TEST(AggregateTest, TheAverageOfOneClientKeepsItsBits) {
  const LocalTask task = small_task(Method::kSmoothAdv);
  const Partition p = partition(PartitionKind::kWhole, 1);
  const Weights global = start().global;
  const auto passes = reference_passes(task.network);
  const Update update = local_train(task, *passes, global, 0, p.images(0), 0);
  FixedPointSum sum;
  sum.add(update.weights, parameters(task.network), 1.0);
  const Weights average = sum.average(global, parameters(task.network));
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
  const std::vector<Parameter> known = parameters(kNormed);
  FixedPointSum sum;
  sum.add(normed(1, 1), known, 0.75);
  sum.add(normed(4, 4), known, 0.25);
  EXPECT_EQ(sum.kept_share(), 1.0);
  expect_same(sum.average(normed(0, 0), known), normed(1.75f, 1.75f));
}

// Each value of a running statistic within 2^12, as one 64-bit word would sum it.
TEST(AggregateTest, StatisticsWithinTheBoundOfWeightsAverageToTheBitsOfOneWord) {
  const std::vector<Parameter> known = parameters(kNormed);
  const Weights like = {Array({2}), Array({2}), Array({2}), Array({2})};
  for (int64_t clients = 1; clients < 60; ++clients) {
    FixedPointSum sum;
    long long words[2] = {}, share = 0;
    for (int64_t k = 0; k < clients; ++k) {
      const float magnitude = std::ldexp(1.0f, static_cast<int>((7 * k) % 62) - 50);
      const Array value = each(uniform({2}, 3 * clients + k), [&](float x) {
        return std::clamp((x - 0.5f) * 2 * magnitude, -0x1p12f, 0x1p12f);
      });
      const double part = (1.0 + static_cast<double>(k)) / (0.5 * clients * (clients + 1.0));
      sum.add({value, value, value, value}, known, part);
      for (int i = 0; i < 2; ++i) words[i] += std::llrint(part * 0x1p50 * value.floats()[i]);
      share += std::llrint(part * 0x1p50);
    }
    const Weights found = sum.average(like, known);
    for (int i = 0; i < 2; ++i) {
      const auto expected =
          static_cast<float>(static_cast<double>(words[i]) / static_cast<double>(share));
      for (const Array& w : found) EXPECT_EQ(w.floats()[i], expected) << clients;
    }
  }
}

TEST(AggregateTest, LargeStatisticsAverageInAnyOrder) {
  const std::vector<Parameter> known = parameters(kNormed);
  const std::vector<float> values = {1e30f, -1e30f, 3e20f, 5e6f, -7.25f, 1e-3f, 8e29f, 0};
  const auto average = [&](const std::vector<float>& order) {
    FixedPointSum sum;
    for (const float value : order) sum.add(normed(1, value), known, 0.125);
    return sum.average(normed(0, 0), known);
  };
  std::vector<float> order = values;
  std::ranges::sort(order);
  const Weights expected = average(order);
  EXPECT_FLOAT_EQ(expected[2].floats()[0], 1e29f);
  EXPECT_FLOAT_EQ(expected[3].floats()[0], 3.5e29f);  // of magnitudes
  for (int turn = 0; turn < 500 && std::ranges::next_permutation(order).found; ++turn) {
    expect_same(average(order), expected);
  }
  // Large values that cancel leave small ones whole.
  FixedPointSum sum;
  for (const float value : {1e30f, 0.75f, -1e30f, -0.5f}) sum.add(normed(1, value), known, 0.25);
  EXPECT_EQ(sum.average(normed(0, 0), known)[2].floats()[0], 0.0625f);
}

// 2^20 clients at the bound: no word overflows.
TEST(AggregateTest, AMillionLargestStatisticsAverageToThemselves) {
  constexpr int64_t kClients = 1 << 20;
  for (const float value : {1e30f, -1e30f, std::nextafter(1e30f, 0.0f)}) {
    long long words[kWideWords] = {};
    for (int64_t k = 0; k < kClients; ++k) add_scaled(&value, 1, 0x1p30, false, words);
    float found = 0;
    divide_sums(words, 1, 0x1p50, false, &found);
    EXPECT_EQ(found, value);
  }
}

TEST(AggregateTest, NamesTheTensorThatCannotBeAveraged) {
  const std::vector<Parameter> known = parameters(kNormed);
  const auto why = [&](const Weights& weights, ValueBounds bounds) {
    return out_of_bounds(weights, known, bounds).value_or("");
  };
  EXPECT_EQ(why(normed(4096, 1e30f), kAveraged), "");
  EXPECT_EQ(why(normed(4097, 1), kAveraged), "norm.weight is beyond 4096");
  EXPECT_EQ(why(normed(1, 2e30f), kAveraged), "norm.running_mean is beyond 1e+30");
  EXPECT_EQ(why(normed(NAN, 1), kAveraged), "norm.weight is not finite");
  EXPECT_EQ(why(normed(3e38f, 3e38f), kFinite), "");
  EXPECT_EQ(why(normed(1, INFINITY), kFinite), "norm.running_mean is not finite");
  Weights negative = normed(1, 1);
  negative[3] = Array::full(negative[3].sizes(), -1e-6f);
  EXPECT_EQ(why(negative, kAveraged), "norm.running_var is below zero");
  EXPECT_EQ(why(negative, kFinite), "norm.running_var is below zero");
  negative[3] = Array::full(negative[3].sizes(), 0.0f);  // a dead channel's
  EXPECT_EQ(why(negative, kAveraged), "");
}

TEST(AggregateTest, ABrokenClientIsLeftOutAndNamed) {
  const Weights global = normed(0, 0);
  for (const Weights& bad : {normed(NAN, 1), normed(5000, 1), normed(1, INFINITY)}) {
    for (const Gather gather : {Gather::kSum, Gather::kEach}) {
      LocalTask task{kNormed, shapes()};
      const Round round{task, global, {{4, 7}, {{0}, {1}}, 2}, 0, 0, gather};
      RoundResult result;
      result.add(round, 0, {normed(1.5f, 1e9f), {}});
      result.add(round, 1, {bad, {}});
      EXPECT_EQ(result.dropped, 1);
      ASSERT_EQ(result.named.size(), 1U);
      EXPECT_EQ(result.named[0].client, 7);
      EXPECT_EQ(result.named[0].why, out_of_bounds(bad, parameters(kNormed), kAveraged));
      expect_same(reduce({}, kNormed, result, global), normed(1.5f, 1e9f));
    }
  }
}

}  // namespace
}  // namespace fedsmooth
