// A base classifier that another library runs on the GPU.
#pragma once

#include <functional>
#include <memory>

#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

struct DeviceFunction {
  /// Images float32 [batch, C, H, W] to logits float32 [batch, classes], both in the GPU's memory.
  /// The logits stay until the next call.
  std::function<const float*(float* images, const Sizes& sizes)> call;
  int gpu = 0;
  void* stream = nullptr;  // a cudaStream_t, on which the function runs
};

/// Counts votes of f, whose function on the CPU's memory is that of `on_gpu`, on the GPU: with the
/// noise of add_noise(), bit for bit. Null in a build without CUDA, or where no GPU is found.
std::unique_ptr<Sampler> make_device_sampler(const BaseClassifier& f, const DeviceFunction& on_gpu);

}  // namespace fedsmooth
