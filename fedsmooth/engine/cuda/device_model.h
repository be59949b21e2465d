// A model on the GPU, to be asked for logits and gradients.
#pragma once

#include "fedsmooth/engine/cuda/kernels/wave/batched_votes.h"
#include "fedsmooth/engine/cuda/layer_passes.h"
#include "fedsmooth/model/model.h"

namespace fedsmooth {

class DeviceModel {
 public:
  /// For a network that device_network() takes.
  DeviceModel(const Model& model, Precision precision);

  const DeviceNetwork& network() const { return *network_; }
  /// Of a network that BatchedPlan supports.
  const DevicePlan& device() const { return static_cast<const DevicePlan&>(*network_); }
  const BatchedPlan& plan() const { return device().plan; }
  Precision precision() const { return precision_; }
  int image_size() const;

  StackedWeights weights() const { return {weights_.data(), working_.data(), nullptr}; }

  /// The logits of `images`, in maps of `rows` rows.
  WaveShape shape(int images, int rows) const;
  /// How an image's values go into the first map, at `out`.
  InputMap input_map(void* out) const;

 private:
  Precision precision_;
  std::unique_ptr<DeviceNetwork> network_;
  DeviceArray<float> weights_;
  DeviceArray<uint8_t> working_;
};

}  // namespace fedsmooth
