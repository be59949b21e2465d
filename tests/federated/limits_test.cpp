// Limits in which one rule is another: the same bits as the plain run.
#include <gtest/gtest.h>

#include "fedsmooth/engine/threaded_executor.h"
#include "fedsmooth/federated/server/server_optimizers.h"
#include "tests/arrays.h"
#include "tests/federated/small_training.h"

namespace fedsmooth {
namespace {

class LimitsTest : public testing::Test {
 protected:
  LimitsTest() {
    options_.rounds = 3;
    options_.clients_per_round = 5;
  }

  // Clients hold 40 images each.
  Weights trained(const TrainOptions& options, const LocalTask& task = linear_task()) {
    const Partition p = partition(PartitionKind::kIid);
    ThreadedExecutor executor(2, reference_passes);
    ServerState state = start(task);
    train({task, options, p, state, [](const auto&, const auto&) { return true; }}, executor);
    return state.global;
  }

  void expect_plain(const TrainOptions& options) { expect_same(trained(options), plain_); }

  TrainOptions options_;
  Weights plain_ = trained({.rounds = 3, .clients_per_round = 5});
};

TEST_F(LimitsTest, ReductionsThatKeepEveryClientAreTheMean) {
  options_.aggregate = {.kind = "trimmed-mean", .trim = 0};
  expect_plain(options_);
  options_.aggregate = {.kind = "multi-krum", .assumed_bad = 0};
  expect_plain(options_);
  options_.aggregate = {.clip = 1e9};
  expect_plain(options_);
  options_.aggregate = {.kind = "median"};
  EXPECT_FALSE(same_bits(trained(options_)[0], plain_[0]));
}

TEST_F(LimitsTest, OneClusterIsThePlainRun) {
  options_.server.clusters = 1;
  expect_plain(options_);
  options_.clients_per_round = 4;
  const Weights one = trained(options_);
  options_.server.clusters = 2;
  EXPECT_FALSE(same_bits(trained(options_)[0], one[0]));
}

// Of 12 clients a share of 0.01 is none.
TEST_F(LimitsTest, NoBadClientsAreThePlainRun) {
  for (const ByzantineKind kind :
       {ByzantineKind::kSignFlip, ByzantineKind::kNoise, ByzantineKind::kLabelFlip}) {
    options_.byzantine = {.share = 0.01, .kind = kind};
    expect_plain(options_);
    options_.byzantine.share = 0.5;
    EXPECT_FALSE(same_bits(trained(options_)[0], plain_[0]));
  }
}

TEST_F(LimitsTest, SfatOfOneOrOfOneRoundIsThePlainRun) {
  options_.aggregate.sfat = 1;
  expect_plain(options_);
  options_.aggregate.sfat = 1.4;
  EXPECT_FALSE(same_bits(trained(options_)[0], plain_[0]));
  TrainOptions once{.rounds = 1, .clients_per_round = 5};
  const Weights first = trained(once);
  once.aggregate.sfat = 1.4;
  expect_same(trained(once), first);
}

TEST_F(LimitsTest, FedProxWithoutItsPullIsThePlainRun) {
  LocalTask task = linear_task();
  task.local.mu = 0;
  expect_same(trained(options_, task), plain_);
  task.local.mu = 0.5;
  EXPECT_FALSE(same_bits(trained(options_, task)[0], plain_[0]));
}

TEST_F(LimitsTest, ARateThatDoesNotFallIsThePlainRun) {
  LocalTask task = linear_task();
  task.local.decay = 1;
  expect_same(trained(options_, task), plain_);
  task.local.decay = 0.1;
  EXPECT_FALSE(same_bits(trained(options_, task)[0], plain_[0]));
}

TEST_F(LimitsTest, AServerRateOfOneAndTheMeanOfOneModelAreThePlainRun) {
  options_.server.learning_rate = 1;
  options_.server.average_from = options_.rounds;
  expect_plain(options_);
}

TEST_F(LimitsTest, MomentumOfZeroIsThePlainRun) {
  options_.server = {.optimizer = "momentum", .momentum = 0};
  // w + (average - w) rounds where the average itself does not.
  const Weights found = trained(options_);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_LT(difference(found[i], plain_[i]), 1e-6);
  options_.server.optimizer = "acg";
  const Weights ahead = trained(options_);
  for (size_t i = 0; i < ahead.size(); ++i) EXPECT_LT(difference(ahead[i], plain_[i]), 1e-6);
}

}  // namespace
}  // namespace fedsmooth
