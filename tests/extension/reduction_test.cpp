// A reduction of one's own, chosen in an experiment, in this file alone. That threads and the order
// of the clients change nothing is tested for every row of the table, and so for this one.
#include <gtest/gtest.h>

#include "fedsmooth/config/experiment.h"
#include "tests/federated/small_training.h"

namespace fedsmooth {
namespace {

// The weights of the kept client with the smallest number.
Reduction first_client() {
  return {"first-client", Gather::kEach,
          [](const ReductionInput& in) { return in.cohort.each.front().weights; }};
}

const bool kAdded = (reductions().add(first_client()), true);

TEST(ReductionTest, IsChosenByItsNameAndTrains) {
  ASSERT_TRUE(kAdded);
  Experiment e = parse_experiment("aggregate.kind = 'first-client'", "e.toml");
  e.train.rounds = 1;
  e.train.clients_per_round = 3;
  const LocalTask task = linear_task();
  const Partition p = partition(PartitionKind::kIid);
  SerialExecutor executor(reference_passes);
  ServerState state = start(task);
  train({task, e.train, p, state, [](const auto&, const auto&) { return true; }}, executor);
  const Cohort cohort = sample_cohort(p, 3, task.seed, 0);
  const auto passes = reference_passes(task.network);
  const Update first =
      local_train(task, *passes, start(task).global, cohort.clients[0], cohort.images[0], 0);
  expect_same(state.global, first.weights);
}

}  // namespace
}  // namespace fedsmooth
