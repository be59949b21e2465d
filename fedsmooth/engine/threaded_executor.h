// A round's clients on all cores: each worker takes clients until there are none left, and adds
// their weights to a sum of its own. Memory: one model and one sum per worker, whatever the cohort.
// Layer lists go through LaneNetwork, others through LibTorch.
#pragma once

#include "fedsmooth/base/parallel.h"
#include "fedsmooth/federated/train.h"

namespace fedsmooth {

class ThreadedExecutor : public Executor {
 public:
  /// Plain passes agree with the SerialExecutor to the bit; the others with each other, whatever
  /// the threads.
  explicit ThreadedExecutor(int threads, bool plain = false) : workers_(threads), plain_(plain) {}
  RoundResult run(const LocalTask& task, const Weights& global, const Cohort& cohort,
                  int64_t t) override;

 private:
  Workers workers_;
  bool plain_;
};

}  // namespace fedsmooth
