// Groups that are trained side by side, compared with each of them alone.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "fedsmooth/federated/side_by_side.h"
#include "tests/federated/small_training.h"

namespace fedsmooth {

/// Expects that each of three groups of twelve clients ends with the same bits whether all groups
/// train side by side or each trains alone, by executors that `make` returns.
inline void expect_groups_end_as_alone(const LocalTask& task,
                                       const std::function<std::unique_ptr<Executor>()>& make) {
  constexpr int64_t kGroups = 3;
  TrainOptions options{.rounds = 3, .clients_per_round = 4};
  options.server.optimizer = "momentum";
  const auto on_round = [](const auto&, const auto&) { return true; };
  std::vector<Partition> partitions;
  std::vector<ServerState> states(kGroups, start(task)), alone = states;
  for (int64_t g = 1; g <= kGroups; ++g) {
    partitions.push_back(partition(PartitionKind::kIid));
    partitions.back().take_group({kGroups, g});
  }
  std::vector<Training> runs;
  for (int64_t g = 0; g < kGroups; ++g) {
    runs.push_back({task, options, partitions[g], states[g], on_round, g});
  }
  for (const auto& thrown : train_side_by_side(runs, *make())) EXPECT_FALSE(thrown);
  for (int64_t g = 0; g < kGroups; ++g) {
    SCOPED_TRACE(testing::Message() << "group " << g + 1);
    train({task, options, partitions[g], alone[g], on_round}, *make());
    expect_same(states[g].global, alone[g].global);
    EXPECT_FALSE(same_bits(states[g].global[0], states[(g + 1) % kGroups].global[0]));
  }
}

}  // namespace fedsmooth
