// Runs the clients of rounds on a GPU, a wave of them at once. Weights are stacked for a wave, and
// every launch computes the same layer of all its clients; a local step is captured once as a CUDA
// graph and replayed. Data stay on the device. Rounds whose steps differ only in numbers (sigma,
// epsilon, learning rate, seed) share waves. A client's result does not depend on its wave.
#pragma once

#include <memory>

#include "fedsmooth/engine/cuda/kernels/pairs/batched_product.h"
#include "fedsmooth/federated/executor.h"

namespace fedsmooth {

class BatchedExecutor : public Executor {
 public:
  /// `wave` is the maximum number of clients in a wave; 0: as many as fit into half of the GPU's
  /// free memory. The first round decides the network: later ones must have the same.
  explicit BatchedExecutor(Precision precision = Precision::kBfloat16, int64_t wave = 0);
  ~BatchedExecutor() override;

  /// Refuses networks that network_refusal() refuses, and objectives without a form for the GPU.
  /// Needs no GPU.
  std::optional<std::string> unsupported(const Round& round) const override;
  std::vector<RoundResult> run(const std::vector<Round>& rounds) override;
  /// Measures a step of the round's first wave.
  std::map<std::string, PhaseCost> measure_step(const Round& round) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fedsmooth
