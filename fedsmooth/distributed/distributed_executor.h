// Rounds on many ranks. Rank 0 broadcasts a plan with the weights, every rank runs its share of the
// clients on an executor of its own, and the sums are added up at rank 0. They are sums of
// integers, so the number of ranks leaves no trace in the result. A rank gets one model and gives
// one, per run and round; where a round gathers each client's weights, one for each client.
#pragma once

#include "fedsmooth/distributed/ranks.h"
#include "fedsmooth/federated/train.h"

namespace fedsmooth {

/// Bytes of the messages that each rank but 0 got and gave, at most.
struct Traffic {
  int64_t down = 0, up = 0;
};

/// Rank 0's part.
class DistributedExecutor : public Executor {
 public:
  /// With one rank, no more than `local`.
  DistributedExecutor(Ranks& ranks, Executor& local) : ranks_(ranks), local_(local) {}
  /// Lets the other ranks know that there are no more rounds.
  ~DistributedExecutor() override;
  DistributedExecutor(const DistributedExecutor&) = delete;
  DistributedExecutor& operator=(const DistributedExecutor&) = delete;

  /// What the local executor does not support; the other ranks have the same device.
  std::optional<std::string> unsupported(const Round& round) const override {
    return local_.unsupported(round);
  }
  /// A round's `run` is the number by which the other ranks open it, see run_shares().
  std::vector<RoundResult> run(const std::vector<Round>& rounds) override;

  const Traffic& traffic() const { return traffic_; }

 private:
  Ranks& ranks_;
  Executor& local_;
  Traffic traffic_;
};

/// What a rank has to know of a run.
struct RankRun {
  LocalTask task;
  TrainOptions options;
  Partition partition;
};

/// The other ranks' part: runs their shares until there are no more rounds. A run is opened when
/// its first round comes. All are of one network.
void run_shares(Ranks& ranks, Executor& local, const Network& network,
                const std::function<RankRun(int64_t run)>& open);

}  // namespace fedsmooth
