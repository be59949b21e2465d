// A round's clients on all cores: each worker takes clients until there are none left, and adds
// their weights to a sum of its own. Memory: one model and one sum per worker, whatever the cohort.
#pragma once

#include "fedsmooth/base/parallel.h"
#include "fedsmooth/federated/train.h"

namespace fedsmooth {

class ThreadedExecutor : public Executor {
 public:
  explicit ThreadedExecutor(int threads) : workers_(threads) {}
  RoundResult run(const LocalTask& task, const Weights& global, const Cohort& cohort,
                  int64_t t) override;

 private:
  Workers workers_;
};

}  // namespace fedsmooth
