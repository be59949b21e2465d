// A model on the GPU, for passes that compute its logits and gradients: one client whose weights do
// not change. Several threads may read it.
#pragma once

#include "fedsmooth/engine/cuda/kernels/wave/batched_votes.h"
#include "fedsmooth/engine/cuda/pair_passes.h"
#include "fedsmooth/model/model.h"

namespace fedsmooth {

class DeviceModel {
 public:
  /// Uploads the model to the current GPU and waits. Its network must be one that network_refusal()
  /// does not refuse.
  DeviceModel(const Model& model, Precision precision);

  const DeviceNetwork& network() const { return *network_; }
  /// Returns the network, which must be of family kPairs.
  const PairNetwork& pairs() const { return static_cast<const PairNetwork&>(*network_); }
  Precision precision() const { return precision_; }
  int image_size() const;

  /// Returns the weights, without momentum. The pointers are valid as long as this object.
  StackedWeights weights() const { return {weights_.data(), working_.data(), nullptr}; }

  /// Returns the shape of a wave of this one client with `images` images, one row each, in maps of
  /// `rows` rows.
  WaveShape shape(int images, int rows) const;

 private:
  Precision precision_;
  std::unique_ptr<DeviceNetwork> network_;
  DeviceArray<float> weights_;
  DeviceArray<uint8_t> working_;
};

}  // namespace fedsmooth
