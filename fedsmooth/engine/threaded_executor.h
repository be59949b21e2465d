// The clients of all rounds on all cores: each worker takes clients until there are none left, and
// adds their weights to sums of its own. Memory: one model and a sum for each round per worker,
// whatever the cohort. Layer lists go through LaneNetwork, others through LibTorch.
#pragma once

#include "fedsmooth/base/parallel.h"
#include "fedsmooth/federated/train.h"

namespace fedsmooth {

class ThreadedExecutor : public Executor {
 public:
  /// Plain passes agree with the SerialExecutor to the bit; the others with each other, whatever
  /// the threads.
  explicit ThreadedExecutor(int threads, bool plain = false) : workers_(threads), plain_(plain) {}
  std::vector<RoundResult> run(const std::vector<Round>& rounds) override;

 private:
  bool uses_lanes(const Network& network) const;

  Workers workers_;
  bool plain_;
};

}  // namespace fedsmooth
