// A model on the GPU, to be asked for logits.
#pragma once

#include "fedsmooth/engine/cuda/kernels/batched_votes.h"
#include "fedsmooth/engine/cuda/layer_passes.h"
#include "fedsmooth/model/model.h"

namespace fedsmooth {

class DeviceModel {
 public:
  DeviceModel(const Model& model, Precision precision);

  const DevicePlan& device() const { return device_; }
  const BatchedPlan& plan() const { return device_.plan; }
  Precision precision() const { return precision_; }
  int image_size() const;

  StackedWeights weights() const { return {weights_.data(), working_.data(), nullptr}; }

  /// The logits of `images`, in maps of `rows` rows.
  WaveShape shape(int images, int rows) const;
  /// How an image's values go into the first map, at `out`.
  InputMap input_map(void* out) const;

 private:
  Precision precision_;
  DevicePlan device_;
  DeviceArray<float> weights_;
  DeviceArray<uint8_t> working_;
};

}  // namespace fedsmooth
