// A plain layer list evaluated at one fixed batch size as fast as one CPU core can: maps as
// [B, H, W, C], every convolution and linear layer a matrix product of fixed shape, weights laid
// out once. The readable twin and oracle is engine/reference.
#pragma once

#include <functional>
#include <vector>

#include "fedsmooth/model/network.h"

namespace fedsmooth {

class FastNetwork {
 public:
  /// Layer lists of normalisation, convolution, ReLU, max-pooling, dropout and linear layers.
  static bool supports(const Network& network);

  FastNetwork(const Network& network, const Weights& weights, int64_t batch);

  /// Images [batch, C, H, W] to logits [batch, K]. Copies share the weights but not the scratch
  /// memory: one copy per thread.
  Array operator()(const Array& images);

  struct Step {
    std::function<void(const float* x, float* out, float* scratch)> run;
    int64_t out_size = 0;      // floats per batch
    int64_t scratch_size = 0;  // floats
  };

 private:
  std::vector<Step> steps_;
  int64_t batch_, classes_;
  std::vector<float> maps_[2], scratch_;  // allocated at the first call
};

}  // namespace fedsmooth
