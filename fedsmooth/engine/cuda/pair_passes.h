// The passes of a network of family kPairs, for many clients at once, each with weights of its own:
// all maps, and the launches that fill them.
#pragma once

#include <vector>

#include "fedsmooth/engine/cuda/kernels/pairs/batched_pooling.h"
#include "fedsmooth/engine/cuda/kernels/pairs/batched_weights.h"
#include "fedsmooth/engine/cuda/kernels/pairs/first_layer.h"
#include "fedsmooth/engine/cuda/launches.h"
#include "fedsmooth/engine/cuda/pair_network.h"

namespace fedsmooth {

class PairPasses : public WavePasses {
 public:
  /// Rows are a multiple of 64. Without `gradients` there is only forward().
  PairPasses(const PairNetwork& device, Precision precision, int clients, int rows, bool gradients);

  void* input() const override { return input_.data(); }
  float* logits() const override { return logits_.data(); }
  void* output_gradient() const override { return gradients_.back().data(); }
  Precision output_precision() const override { return precision_; }
  const void* input_gradient() const override { return input_gradient_.data(); }

  void run(const StackedWeights& weights, PassMode, Launches& launches) override {
    forward(weights, launches);
  }
  void run_images(Precision precision, const WaveShape& shape, const InputMap& images,
                  const StackedWeights& weights, PassMode mode, Launches& launches) override;
  void differentiate_images(const StackedWeights& weights, Launches& launches) override {
    differentiate_input(weights, launches);
  }
  void step(const StackedWeights& weights, const ClientSettings* settings,
            Launches& launches) override {
    update(weights, settings, launches);
  }

  /// From input() to logits().
  void forward(const StackedWeights& weights, Launches& launches);
  /// From the map that node `first` reads.
  void forward_from(size_t first, const StackedWeights& weights, Launches& launches);
  void* node_output(size_t i) const { return maps_[i].data(); }
  /// From output_gradient() to input_gradient().
  void differentiate_input(const StackedWeights& weights, Launches& launches);
  /// From output_gradient() to a step of SGD.
  void update(const StackedWeights& weights, const ClientSettings* settings, Launches& launches);

 private:
  bool has_gradients() const { return input_gradient_.size() > 0; }
  /// Whether one kernel computes a node's operation and its maxima.
  bool fuses_pool(size_t i) const { return device_.fuses_pool(i, precision_); }
  const void* node_input(size_t i) const { return i == 0 ? input_.data() : maps_[i - 1].data(); }
  /// The gradient that the next node writes: of the node's output or, where maxima are fused, of
  /// what its operation gives.
  void* gradient_from_next(size_t i) const {
    return pooled_gradients_[i].size() > 0 ? pooled_gradients_[i].data() : gradients_[i].data();
  }
  const void* kernel(const StackedWeights& weights, const GraphNode& node) const;
  MapProduct product_of(const StackedWeights& weights, const GraphNode& node) const;
  Pooling pooling_of(size_t i) const;
  double operations_of(size_t i) const;
  double weights_of(const GraphNode& node) const;
  double map_bytes_of(const GraphNode& node) const;
  FirstLayerWave first_layer(const WaveShape& shape, const InputMap& images,
                             const StackedWeights& weights) const;
  void multiply(const StackedWeights& weights, size_t i, Launches& launches);
  void pool_back(size_t i, Launches& launches);
  void input_back(const StackedWeights& weights, size_t i, Launches& launches);
  void update_kernel(const StackedWeights& weights, const ClientSettings* settings, size_t i,
                     Launches& launches);
  void update_biases_of(const StackedWeights& weights, const ClientSettings* settings,
                        Launches& launches);

  const PairNetwork& device_;
  const std::vector<GraphNode>& nodes_;
  Precision precision_;
  int clients_, rows_;
  DeviceArray<uint8_t> input_, input_gradient_;
  // Of each node, in the working precision.
  std::vector<DeviceArray<uint8_t>> maps_;              // what it gives
  std::vector<DeviceArray<uint8_t>> before_pool_;       // what its operation gives, if not fused
  std::vector<DeviceArray<uint8_t>> gradients_;         // of what its operation gives
  std::vector<DeviceArray<uint8_t>> pooled_gradients_;  // of its maxima, if not fused
  std::vector<DeviceArray<uint8_t>> choices_;           // of fused maxima
  DeviceArray<float> logits_;
};

}  // namespace fedsmooth
