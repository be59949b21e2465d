#include "fedsmooth/federated/clients/byzantine.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fedsmooth/base/error.h"
#include "fedsmooth/engine/threaded_executor.h"
#include "tests/arrays.h"
#include "tests/federated/small_training.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

Weights train_with(Executor& executor, const TrainOptions& options) {
  const LocalTask task = linear_task();
  const Partition p = partition(PartitionKind::kIid);
  ServerState state = start(task);
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

TEST(ByzantineTest, NamedClientsAreTheBadOnesWhateverTheSeed) {
  const ByzantineOptions named{.clients = {0, 4, 7}};
  EXPECT_TRUE(named.any());
  EXPECT_TRUE(named.corrupts_updates());
  for (const uint64_t seed : {1U, 2U}) {
    EXPECT_EQ(byzantine_clients(named, 8, seed), (std::vector<int64_t>{0, 4, 7}));
  }
  check_byzantine_options(named, 8);
  EXPECT_EQ(refusal([&] { check_byzantine_options(named, 7); }),
            "byzantine.clients: has client 7, and there are 7, numbered from 0");
  EXPECT_EQ(refusal([&] { check_byzantine_options({.share = 0.1, .clients = {1}}, 8); }),
            "byzantine.share=0.1: byzantine.clients names the bad ones; leave one of them out");
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
  result.drop_beyond(kAveraged, parameters(small_network()));
  EXPECT_TRUE(result.nothing_kept());
  EXPECT_EQ(result.dropped, 1);
}

// The bad client's images with other labels, trained on by a good one.
TEST(ByzantineTest, AClientThatFlipsLabelsTrainsOnOtherOnes) {
  Dataset other = shapes();
  for (int64_t& y : other.labels) y = 9 - y;
  for (const bool calibrate : {false, true}) {
    LocalTask task = linear_task();
    task.local.calibrate = calibrate;
    LocalTask good{task.network, other, task.augment, task.method};
    good.local = task.local;
    task.flippers = {1, 3};
    const Weights from = start(task).global;
    const auto train = [&](const LocalTask& by, int64_t k) {
      const auto passes = reference_passes(by.network);
      return local_train(by, *passes, from, k, images_of_client_3(), 2).weights;
    };
    expect_same(train(task, 3), train(good, 3));
    const Weights plain = train(task, 2);
    EXPECT_FALSE(same_bits(plain[0], train(good, 2)[0]));
    task.flippers = {};
    expect_same(train(task, 2), plain);
  }
}

TEST(ByzantineTest, TheBadClientsOfARunFlipLabels) {
  const TrainOptions options{.byzantine = {.share = 0.5, .kind = ByzantineKind::kLabelFlip}};
  const LocalTask task = linear_task();
  EXPECT_EQ(task_in_round(task, options, 12, 5).flippers,
            byzantine_clients(options.byzantine, 12, task.seed));
  EXPECT_TRUE(task_in_round(task, {.byzantine = {.share = 0.5}}, 12, 5).flippers.empty());
  EXPECT_EQ(gathered_for(options), Gather::kSum);  // nothing is replaced
  TrainOptions scaled = options;
  scaled.clients_per_round = 5;
  scaled.byzantine.scale = 2;
  const Partition p = partition(PartitionKind::kIid);
  EXPECT_EQ(refusal([&] { check_train_options(scaled, {}, p); }),
            "byzantine.scale=2: byzantine.kind=\"label-flip\" does not use it; leave it out");
}

TEST(ByzantineTest, ResultsDoNotDependOnThreads) {
  for (const ByzantineKind kind :
       {ByzantineKind::kSignFlip, ByzantineKind::kNoise, ByzantineKind::kLabelFlip}) {
    SerialExecutor serial(reference_passes);
    ThreadedExecutor threaded(3, reference_passes);
    const TrainOptions options{.rounds = 2,
                               .clients_per_round = 5,
                               .aggregate = {"median"},
                               .byzantine = {.share = 0.5, .kind = kind}};
    expect_same(train_with(threaded, options), train_with(serial, options));
  }
}

// Of the last round; infinite if the weights did not stay finite.
double loss_after(const TrainOptions& options) {
  const Dataset data = make_shapes(Split::kTrain, 4000, 0);
  LocalTask task{small_network(), data, /*augment=*/false, Method::kStandard};
  task.local = {.steps = 15, .batch = 16, .learning_rate = 0.05};
  PartitionOptions clients{.kind = PartitionKind::kIid, .clients = 10, .samples_per_client = 400};
  const Partition p(clients, data.labels, 10, 0);
  ThreadedExecutor executor(2);
  ServerState state = start();
  double loss = 0;
  const OnRound on_round = [&](const auto&, const RoundReport& report) {
    loss = report.telemetry.mean_loss();
    return true;
  };
  try {
    train({task, options, p, state, on_round}, executor);
  } catch (const Error&) {
    return INFINITY;
  }
  return loss;
}

// A fifth of the clients send their updates turned round and six times as long: the mean then moves
// away from where it should, 0.8 - 0.2 * 6 = -0.4 of the way. Guessing among ten classes costs
// log 10 = 2.30.
TEST(SlowByzantineTest, SignFlipsRuinTheMeanAndNotTheMedian) {
  TrainOptions options{.rounds = 40, .clients_per_round = 10};
  EXPECT_LT(loss_after(options), 1.0);
  options.byzantine = {.share = 0.2, .scale = 6};
  EXPECT_GT(loss_after(options), 2.3);
  options.aggregate.kind = "median";
  EXPECT_LT(loss_after(options), 1.8);
}

}  // namespace
}  // namespace fedsmooth
