// The clients of all rounds on all cores: each worker takes clients until there are none left, and
// adds their weights to sums of its own. Memory: one model and a sum for each round per worker,
// whatever the cohort; and the cohort where a round gathers each client's weights.
#pragma once

#include "fedsmooth/base/parallel.h"
#include "fedsmooth/federated/executor.h"

namespace fedsmooth {

/// The fastest passes on a CPU that know the network.
std::unique_ptr<Passes> fastest_passes(const Network& network);

class ThreadedExecutor : public Executor {
 public:
  /// By passes that `make` gives each worker; left out, the fastest that know the network. With the
  /// same passes it agrees with the SerialExecutor to the bit, whatever the threads.
  explicit ThreadedExecutor(int threads, MakePasses make = {});
  std::optional<std::string> unsupported(const Round& round) const override {
    return unsupported_on_cpu(round);
  }
  std::vector<RoundResult> run(const std::vector<Round>& rounds) override;

 private:
  Workers workers_;
  MakePasses make_;
};

}  // namespace fedsmooth
