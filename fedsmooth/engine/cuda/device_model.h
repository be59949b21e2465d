// A model on the GPU, to be asked for logits and gradients.
#pragma once

#include "fedsmooth/engine/cuda/kernels/wave/batched_votes.h"
#include "fedsmooth/engine/cuda/pair_passes.h"
#include "fedsmooth/model/model.h"

namespace fedsmooth {

class DeviceModel {
 public:
  /// For a network that device_network() takes.
  DeviceModel(const Model& model, Precision precision);

  const DeviceNetwork& network() const { return *network_; }
  /// For a network of family kPairs.
  const PairNetwork& pairs() const { return static_cast<const PairNetwork&>(*network_); }
  Precision precision() const { return precision_; }
  int image_size() const;

  StackedWeights weights() const { return {weights_.data(), working_.data(), nullptr}; }

  /// The logits of `images`, in maps of `rows` rows.
  WaveShape shape(int images, int rows) const;

 private:
  Precision precision_;
  std::unique_ptr<DeviceNetwork> network_;
  DeviceArray<float> weights_;
  DeviceArray<uint8_t> working_;
};

}  // namespace fedsmooth
