// Rounds on many ranks. Rank 0 broadcasts a plan with the weights, every rank runs its share of the
// clients on an executor of its own, and the sums are added up at rank 0. They are sums of
// integers, so the result does not depend on the number of ranks. Per run and round, each rank
// receives one model and sends one; if the round gathers each client's weights, it sends one per
// client.
#pragma once

#include "fedsmooth/distributed/ranks.h"
#include "fedsmooth/federated/train.h"

namespace fedsmooth {

/// Bytes of messages: the most that any rank other than 0 received (`down`) and sent (`up`).
struct Traffic {
  int64_t down = 0, up = 0;
};

/// The executor of rank 0. `ranks` and `local` must outlive it. It serves one thread at a time.
class DistributedExecutor : public Executor {
 public:
  /// With one rank, it only calls `local`.
  DistributedExecutor(Ranks& ranks, Executor& local) : ranks_(ranks), local_(local) {}
  /// Tells the other ranks that there are no more rounds.
  ~DistributedExecutor() override;
  DistributedExecutor(const DistributedExecutor&) = delete;
  DistributedExecutor& operator=(const DistributedExecutor&) = delete;

  /// Returns what the local executor does not support; the other ranks have the same kind of
  /// device.
  std::optional<std::string> unsupported(const Round& round) const override {
    return local_.unsupported(round);
  }
  /// The other ranks open a run by its number, Round::run; see run_shares().
  std::vector<RoundResult> run(const std::vector<Round>& rounds) override;

  const Traffic& traffic() const { return traffic_; }

 private:
  Ranks& ranks_;
  Executor& local_;
  Traffic traffic_;
};

/// The facts of a run that a rank needs.
struct RankRun {
  LocalTask task;
  TrainOptions options;
  Partition partition;
};

/// Runs the shares of a rank other than 0 until there are no more rounds. `open` is called for a
/// run when its first round arrives. All runs must have the network `network`.
void run_shares(Ranks& ranks, Executor& local, const Network& network,
                const std::function<RankRun(int64_t run)>& open);

}  // namespace fedsmooth
