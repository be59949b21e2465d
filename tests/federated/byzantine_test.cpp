#include "fedsmooth/federated/byzantine.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fedsmooth/engine/threaded_executor.h"
#include "tests/arrays.h"
#include "tests/federated/small_training.h"

namespace fedsmooth {
namespace {

Weights train_with(Executor& executor, const TrainOptions& options) {
  const LocalTask task = small_task(Method::kGaussian);
  const Partition p = partition(PartitionKind::kIid);
  ServerState state = start();
  train({task, options, p, state, [](const auto&, const auto&) { return true; }}, executor);
  return state.global;
}

TEST(ByzantineTest, TheSeedChoosesTheShare) {
  const auto bad = byzantine_clients({.share = 0.2}, 1000, 7);
  EXPECT_EQ(bad.size(), 200U);
  EXPECT_TRUE(std::is_sorted(bad.begin(), bad.end()));
  EXPECT_EQ(bad, byzantine_clients({.share = 0.2}, 1000, 7));
  EXPECT_NE(bad, byzantine_clients({.share = 0.2}, 1000, 8));
  EXPECT_TRUE(byzantine_clients({}, 1000, 7).empty());
}

TEST(ByzantineTest, AFlippedUpdatePointsTheOtherWay) {
  const Weights global = {Array::full({2}, 1)};
  RoundResult result;
  for (const int64_t k : {3, 4, 5}) result.each.push_back({k, 0.5, {Array::full({2}, 1.25f)}});
  corrupt_updates({.share = 1, .scale = 4}, {3, 5}, 0, 0, global, result);
  EXPECT_EQ(result.each[0].weights[0].floats()[1], 0);
  EXPECT_EQ(result.each[1].weights[0].floats()[1], 1.25f);
  EXPECT_EQ(result.each[2].weights[0].floats()[1], 0);
}

// 40,000 normals: their mean is within 5 / 200 of 0, their variance within 5 sqrt(2) / 200 of 1.
TEST(ByzantineTest, NoiseIsAroundTheGlobalWeightsAndNewEveryRound) {
  const Weights global = {Array::full({40000}, 3)};
  const auto sent = [&](int64_t client, int64_t t) {
    RoundResult result;
    result.each.push_back({client, 1, {Array::full({40000}, 1.25f)}});
    corrupt_updates({.share = 1, .kind = ByzantineKind::kNoise, .scale = 0.5}, {client}, 9, t,
                    global, result);
    return result.each[0].weights[0];
  };
  double mean = 0, square = 0;
  for (const float w : values_of(sent(1, 0))) {
    mean += (w - 3) / 0.5 / 40000;
    square += std::pow((w - 3) / 0.5, 2) / 40000;
  }
  EXPECT_NEAR(mean, 0, 5.0 / 200);
  EXPECT_NEAR(square, 1, 5 * std::sqrt(2.0) / 200);
  EXPECT_FALSE(same_bits(sent(1, 0), sent(1, 1)));
  EXPECT_FALSE(same_bits(sent(1, 0), sent(2, 0)));
  EXPECT_TRUE(same_bits(sent(1, 0), sent(1, 0)));
}

TEST(ByzantineTest, WhatIsTooLargeIsDropped) {
  const Weights global = {Array::full({2}, 1)};
  RoundResult result;
  result.each.push_back({3, 1, {Array::full({2}, 2)}});
  corrupt_updates({.share = 1, .scale = 1e4}, {3}, 0, 0, global, result);
  EXPECT_TRUE(result.nothing_kept());
  EXPECT_EQ(result.sum.dropped(), 1);
}

// Nobody is bad: of 12 clients a share of 0.01 is none.
TEST(ByzantineTest, WithoutBadClientsItIsThePlainRunToTheBit) {
  SerialExecutor executor(reference_passes);
  TrainOptions options{.rounds = 2, .clients_per_round = 5};
  const Weights plain = train_with(executor, options);
  options.byzantine.share = 0.01;
  expect_same(train_with(executor, options), plain);
}

TEST(ByzantineTest, ThreadsChangeNothing) {
  for (const ByzantineKind kind : {ByzantineKind::kSignFlip, ByzantineKind::kNoise}) {
    SerialExecutor serial(reference_passes);
    ThreadedExecutor threaded(3, reference_passes);
    const TrainOptions options{.rounds = 2,
                               .clients_per_round = 5,
                               .aggregate = {"median"},
                               .byzantine = {.share = 0.5, .kind = kind}};
    expect_same(train_with(threaded, options), train_with(serial, options));
  }
}

double loss_after(const TrainOptions& options) {
  const LocalTask task = small_task(Method::kStandard);
  const Partition p = partition(PartitionKind::kIid);
  ThreadedExecutor executor(2);
  ServerState state = start();
  double loss = 0;
  train({task, options, p, state,
         [&](const auto&, const RoundReport& report) {
           loss = report.telemetry.mean_loss();
           return true;
         }},
        executor);
  return loss;
}

// A quarter of the clients send their updates turned round and four times as long: the mean then
// moves away from where it should, 0.75 - 0.25 * 4 = -0.25 of the way.
TEST(SlowByzantineTest, SignFlipsRuinTheMeanAndNotTheMedian) {
  TrainOptions options{.rounds = 25, .clients_per_round = 12};
  const double plain = loss_after(options);
  options.byzantine = {.share = 0.25, .scale = 4};
  const double mean = loss_after(options);
  options.aggregate.kind = "median";
  const double median = loss_after(options);
  EXPECT_LT(plain, 2.0);
  EXPECT_GT(mean, 2.3);  // guessing among ten classes: log 10
  EXPECT_LT(median, plain + 0.5 * (2.3 - plain));
}

}  // namespace
}  // namespace fedsmooth
