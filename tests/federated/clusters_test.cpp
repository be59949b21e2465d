// FedCluster: a round in cycles, one for each cluster.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "fedsmooth/base/error.h"
#include "fedsmooth/federated/side_by_side.h"
#include "tests/arrays.h"
#include "tests/federated/small_training.h"

namespace fedsmooth {
namespace {

TEST(ClustersTest, EveryClientIsInOneClusterWhateverTheRound) {
  const Partition p = partition(PartitionKind::kIid);
  std::vector<std::set<int64_t>> clusters(3);
  for (int64_t number = 0; number < 3; ++number) {
    for (int64_t t = 0; t < 30; ++t) {
      const Cohort cohort = sample_cohort(p, 2, 5, t, {number, 3});
      EXPECT_EQ(cohort.clients.size(), 2U);
      clusters[number].insert(cohort.clients.begin(), cohort.clients.end());
    }
    EXPECT_EQ(clusters[number].size(), 4U);  // of twelve
  }
  std::set<int64_t> all;
  for (const auto& cluster : clusters) all.insert(cluster.begin(), cluster.end());
  EXPECT_EQ(all.size(), 12U);
}

TEST(ClustersTest, OneClusterIsEverybody) {
  const Partition p = partition(PartitionKind::kIid);
  for (int64_t t = 0; t < 5; ++t) {
    EXPECT_EQ(sample_cohort(p, 5, 1, t, {0, 1}).clients, sample_cohort(p, 5, 1, t).clients);
  }
}

// Two clusters by hand: what the first gives is where the second begins.
TEST(ClustersTest, ARoundIsAStepForEachClusterInTurn) {
  const LocalTask task = linear_task();
  const Partition p = partition(PartitionKind::kIid);
  SerialExecutor executor(reference_passes);
  TrainOptions options{.rounds = 2, .clients_per_round = 6};
  options.server = {.optimizer = "momentum", .momentum = 0.5, .clusters = 2};
  Weights global = start(task).global;
  NamedWeights kept;
  std::vector<double> losses(2);
  for (int64_t t = 0; t < 2; ++t) {
    Telemetry telemetry;
    for (int64_t number = 0; number < 2; ++number) {
      const Weights from = global;
      const RoundResult result =
          run_round(executor, {task_in_round(task, options, p.clients(), t), from,
                               sample_cohort(p, 3, task.seed, t, {number, 2}), t});
      server_step(options.server, task.network, result.sum.average(from, parameters(task.network)),
                  global, kept);
      telemetry.add(result.telemetry);
    }
    losses[t] = telemetry.mean_loss();
  }
  ServerState state = start(task);
  std::vector<int64_t> rounds;
  const OnRound on_round = [&](const ServerState& now, const RoundReport& report) {
    rounds.push_back(report.round);
    EXPECT_EQ(report.telemetry.mean_loss(), losses[report.round - 1]);
    EXPECT_EQ(now.round, report.round);
    EXPECT_EQ(now.cluster, 0);
    return true;
  };
  train({task, options, p, state, on_round}, executor);
  EXPECT_EQ(rounds, (std::vector<int64_t>{1, 2}));
  expect_same(state.global, global);
  expect_same(state.kept.at("velocity"), kept.at("velocity"));

  // Side by side with another run too.
  ServerState beside = start(task), other = start(task);
  const OnRound any = [](const auto&, const auto&) { return true; };
  for (const auto& thrown :
       train_side_by_side({{task, options, p, beside, any},
                           {task, {.rounds = 3, .clients_per_round = 2}, p, other, any}},
                          executor)) {
    EXPECT_FALSE(thrown);
  }
  expect_same(beside.global, global);
}

TEST(ClustersTest, ClustersMustDivideTheCohort) {
  const Partition p = partition(PartitionKind::kIid);
  TrainOptions options{.clients_per_round = 6};
  options.server.clusters = 3;
  check_train_options(options, {}, p);
  options.server.clusters = 4;
  EXPECT_THROW(check_train_options(options, {}, p), Error);
}

}  // namespace
}  // namespace fedsmooth
