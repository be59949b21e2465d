// The passes of a network on the GPU, for many clients at once, each with weights of its own: all
// maps, and the launches that fill them.
#pragma once

#include <vector>

#include "fedsmooth/engine/cuda/device_plan.h"
#include "fedsmooth/engine/cuda/kernels/pairs/batched_pooling.h"
#include "fedsmooth/engine/cuda/kernels/pairs/batched_weights.h"
#include "fedsmooth/engine/cuda/kernels/pairs/first_layer.h"
#include "fedsmooth/engine/cuda/launches.h"

namespace fedsmooth {

class LayerPasses : public WavePasses {
 public:
  /// Rows are a multiple of 64. Without `gradients` there is only forward().
  LayerPasses(const DevicePlan& device, Precision precision, int clients, int rows, bool gradients);

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
  /// From the map that stage `first` reads.
  void forward_from(size_t first, const StackedWeights& weights, Launches& launches);
  void* stage_output(size_t stage) const { return maps_[stage].data(); }
  /// From output_gradient() to input_gradient().
  void differentiate_input(const StackedWeights& weights, Launches& launches);
  /// From output_gradient() to a step of SGD.
  void update(const StackedWeights& weights, const ClientSettings* settings, Launches& launches);

 private:
  bool fused_into_previous(size_t pool) const;
  const void* stage_input(size_t stage) const {
    return stage == 0 ? input_.data() : maps_[stage - 1].data();
  }
  const void* kernel(const StackedWeights& weights, const BatchedStage& stage) const;
  MapProduct product_of(const StackedWeights& weights, const BatchedStage& stage) const;
  Pooling pooling_of(size_t stage) const;
  double operations_of(const BatchedStage& stage) const;
  double weights_of(const BatchedStage& stage) const;
  double map_bytes_of(const BatchedStage& stage) const;
  FirstLayerWave first_layer(const WaveShape& shape, const InputMap& images,
                             const StackedWeights& weights) const;
  void forward_stage(const StackedWeights& weights, size_t stage, Launches& launches);
  void differentiate_stage(const StackedWeights& weights, size_t stage, Launches& launches);
  void update_stage(const StackedWeights& weights, const ClientSettings* settings, size_t stage,
                    Launches& launches);
  void update_biases_of(const StackedWeights& weights, const ClientSettings* settings,
                        Launches& launches);

  const DevicePlan& device_;
  Precision precision_;
  int clients_, rows_;
  DeviceArray<uint8_t> input_, input_gradient_;
  std::vector<DeviceArray<uint8_t>> maps_, gradients_;  // in the working precision
  std::vector<DeviceArray<uint8_t>> choices_;           // of pools that are one with their product
  DeviceArray<float> logits_;
};

}  // namespace fedsmooth
