// Rounds whose clients run on nodes that the caller reaches by means of its own, such as a platform
// for federated learning. Per round a node receives one message and sends one, whatever the number
// of its clients. The rounds of several runs are asked for together.
#pragma once

#include "fedsmooth/federated/train.h"

namespace fedsmooth {

class RemoteExecutor : public Executor {
 public:
  /// Returns the words (see round_words.h) of each round's clients, in which clients without an
  /// answer count as dropped. Empty words give a round up.
  using Ask = std::function<std::vector<std::vector<long long>>(const std::vector<Round>& rounds)>;

  explicit RemoteExecutor(Ask ask) : ask_(std::move(ask)) {}
  /// Refuses reductions that need each client's weights, because nodes send sums.
  std::optional<std::string> unsupported(const Round& round) const override;
  std::vector<RoundResult> run(const std::vector<Round>& rounds) override;

 private:
  Ask ask_;
};

/// The message to a node: some of a round's clients, and the weights to start from.
struct NodeTask {
  int64_t t = 0;      // number of the round, from 0
  int64_t total = 0;  // images of the whole cohort
  std::vector<int64_t> clients;
  Weights global;
};

/// Runs a node's clients and returns their words. `task` is that of the whole training.
std::vector<long long> run_node_task(Executor& executor, const LocalTask& task,
                                     const TrainOptions& options, const Partition& partition,
                                     const NodeTask& asked);

/// Returns the number of values in all tensors of a model.
int64_t count_values(const Weights& weights);

}  // namespace fedsmooth
