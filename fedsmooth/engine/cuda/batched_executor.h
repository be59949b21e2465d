// Clients all at once on a GPU. Weights are stacked for a wave of clients, and every launch does
// the same layer of all of them; a local step is captured once as a CUDA graph and replayed. Data
// stay on the device. Rounds whose steps differ only in numbers (sigma, epsilon, learning rate,
// seed) share their waves. A client's result does not depend on its wave.
#pragma once

#include <memory>

#include "fedsmooth/engine/cuda/kernels/pairs/batched_product.h"
#include "fedsmooth/federated/executor.h"

namespace fedsmooth {

class BatchedExecutor : public Executor {
 public:
  /// Trains networks that network_refusal() does not refuse. `wave` is the most clients in a wave;
  /// 0: as many as fit into the GPU's memory.
  explicit BatchedExecutor(Precision precision = Precision::kBfloat16, int64_t wave = 0);
  ~BatchedExecutor() override;

  /// Networks that network_refusal() refuses, and objectives without a form for the GPU. Needs no
  /// GPU.
  std::optional<std::string> unsupported(const Round& round) const override;
  std::vector<RoundResult> run(const std::vector<Round>& rounds) override;
  /// Times of the first wave.
  std::map<std::string, PhaseCost> measure_step(const Round& round) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fedsmooth
