// A server rule of one's own, chosen in an experiment, in this file alone. That its state goes into
// checkpoints and it resumes is tested for every row of the table, and so for this one.
#include <gtest/gtest.h>

#include "fedsmooth/config/experiment.h"
#include "tests/federated/small_training.h"

namespace fedsmooth {
namespace {

// The mean of all rounds' averages: w <- w + Delta / t.
ServerOptimizer mean_of_rounds() {
  return {"mean-of-rounds",
          1.0,
          {{"rounds", [](const ServerOptions&) { return 0.0; }}},
          [](const ServerOptions&, const ServerStep& s) {
            float* t = s.state[0];
            for (int64_t i = 0; i < s.count; ++i) {
              t[i] += 1;
              s.w[i] += (s.average[i] - s.w[i]) / t[i];
            }
          }};
}

const bool kAdded = (server_optimizers().add(mean_of_rounds()), true);

TEST(ServerRuleTest, IsChosenByItsNameAndTrains) {
  ASSERT_TRUE(kAdded);
  Experiment e = parse_experiment("server.optimizer = 'mean-of-rounds'", "e.toml");
  e.train.rounds = 3;
  e.train.clients_per_round = 2;
  const LocalTask task = linear_task();
  const Partition p = partition(PartitionKind::kIid);
  SerialExecutor executor(reference_passes);
  ServerState state = start(task);
  const OnRound on_round = [](const ServerState& now, const auto&) {
    EXPECT_EQ(now.kept.at("rounds")[0].floats()[0], now.round);
    return true;
  };
  train({task, e.train, p, state, on_round}, executor);
  EXPECT_EQ(state.round, 3);
  EXPECT_FALSE(same_bits(state.global[0], start(task).global[0]));
}

}  // namespace
}  // namespace fedsmooth
