// Passes of a network of family kPairs for many clients at once, each with weights of its own. The
// object owns all maps and launches the kernels that fill them.
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
  /// `rows` must be a multiple of 64. Without `gradients` only forward passes may run. `device`
  /// must outlive it.
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

  /// Runs the forward pass from input() to logits().
  void forward(const StackedWeights& weights, Launches& launches);
  /// Runs the forward pass from node `first` on, whose input map must be filled.
  void forward_from(size_t first, const StackedWeights& weights, Launches& launches);
  /// Returns the map that node i writes.
  void* node_output(size_t i) const { return maps_[i].data(); }
  /// Computes input_gradient() from output_gradient().
  void differentiate_input(const StackedWeights& weights, Launches& launches);
  /// Computes the weights' gradients from output_gradient(), and applies a step of SGD.
  void update(const StackedWeights& weights, const ClientSettings* settings, Launches& launches);

 private:
  bool has_gradients() const { return input_gradient_.size() > 0; }
  /// Returns whether one kernel computes a node's operation and its maxima.
  bool fuses_pool(size_t i) const { return device_.fuses_pool(i, precision_); }
  const void* node_input(size_t i) const { return i == 0 ? input_.data() : maps_[i - 1].data(); }
  /// Returns the gradient that the next node writes: of the node's output or, if maxima are fused,
  /// of the map before them.
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
  // For each node, in the working precision; empty if not needed.
  std::vector<DeviceArray<uint8_t>> maps_;              // its output
  std::vector<DeviceArray<uint8_t>> before_pool_;       // map before maxima that are not fused
  std::vector<DeviceArray<uint8_t>> gradients_;         // of the map before maxima
  std::vector<DeviceArray<uint8_t>> pooled_gradients_;  // of maxima that are not fused
  std::vector<DeviceArray<uint8_t>> choices_;           // of fused maxima, see MapProduct::choice
  DeviceArray<float> logits_;
};

}  // namespace fedsmooth
