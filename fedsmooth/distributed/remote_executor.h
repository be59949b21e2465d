// Rounds whose clients run on nodes that the caller reaches in its own way, such as a platform for
// federated learning. A node gets one message and gives one, per round, whatever the number of its
// clients.
#pragma once

#include "fedsmooth/federated/train.h"

namespace fedsmooth {

class RemoteExecutor : public Executor {
 public:
  /// The words (see round_words.h) of a round's clients, those that no node answered for as
  /// dropped. None: the round is given up.
  using Ask = std::function<std::vector<long long>(const Round& round)>;

  explicit RemoteExecutor(Ask ask) : ask_(std::move(ask)) {}
  /// Reductions that need each client's weights: nodes send sums.
  std::optional<std::string> unsupported(const Round& round) const override;
  std::vector<RoundResult> run(const std::vector<Round>& rounds) override;

 private:
  Ask ask_;
};

/// What a node is sent: some of a round's clients, and the weights to start from.
struct NodeTask {
  int64_t t = 0;      // the round, from 0
  int64_t total = 0;  // images of the whole cohort
  std::vector<int64_t> clients;
  Weights global;
};

/// A node's part of a round: the words of its clients. `task` is that of the whole training.
std::vector<long long> run_node_task(Executor& executor, const LocalTask& task,
                                     const TrainOptions& options, const Partition& partition,
                                     const NodeTask& asked);

/// Of all weights of a model.
int64_t count_values(const Weights& weights);

}  // namespace fedsmooth
