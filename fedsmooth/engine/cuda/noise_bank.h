// A bank of draws. The first layer of a network is linear: what it gives of a noise is computed
// once for the samples of a stream and serves every image, as long as all draw from that stream.
#pragma once

#include "fedsmooth/engine/cuda/device_model.h"
#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

/// The first layer of a model in float32; its ReLU, pooling and rounding come after the sum of what
/// it gives of an image and of a noise.
class FirstLayer {
 public:
  explicit FirstLayer(const DeviceModel& model);

  /// How many stages it takes the place of.
  size_t stages() const { return pooled_ ? 2 : 1; }

  /// What it gives of images [count, image] (normalised), with its bias, or of noises: floats
  /// [pixel, rows, channel], with rows a multiple of 64.
  DeviceArray<float> of_images(const float* images, int count, Launches& launches) const;
  void of_noises(const NoisyRows& noises, float* out, Launches& launches) const;
  int64_t row_size() const { return stage().out.row_size(); }

  /// For add_from_bank(): everything but the rows and what lies where.
  BankRows sums() const;

 private:
  const BatchedStage& stage() const { return model_.plan().stages.front(); }
  void multiply(const float* map, int rows, bool bias, float* out, Launches& launches) const;

  const DeviceModel& model_;
  bool pooled_;
  DeviceArray<float> no_mean_;
};

/// What the first layer gives of samples 0 .. n-1 of a stream.
class NoiseBank {
 public:
  NoiseBank(const FirstLayer& layer, const DeviceModel& model, const VoteRequest& draws, int rows,
            Launches& launches);

  bool serves(const VoteRequest& request) const;
  /// Whether its draws are the first ones of the request's stream, perhaps too few.
  bool begins(const VoteRequest& request) const;
  const float* data() const { return of_noise_.data(); }

 private:
  VoteRequest draws_;  // without an image
  DeviceArray<float> of_noise_;
};

}  // namespace fedsmooth
