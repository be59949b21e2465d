// Runs the clients of all rounds on all cores: each worker takes clients until there are none left,
// and adds their weights to sums of its own. Each worker needs memory for one model and for one sum
// per round, whatever the size of the cohort. A round that gathers each client's weights also keeps
// the cohort.
#pragma once

#include "fedsmooth/base/parallel.h"
#include "fedsmooth/federated/executor.h"

namespace fedsmooth {

/// Returns the fastest passes on a CPU that know the network, for one thread.
std::unique_ptr<Passes> fastest_passes(const Network& network);

class ThreadedExecutor : public Executor {
 public:
  /// `make` gives each worker its passes; without it they are the fastest that know the network.
  /// With the same passes, results have the bits of the SerialExecutor, for any number of threads.
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
