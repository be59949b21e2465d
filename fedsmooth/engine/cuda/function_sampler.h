// Votes of a function that another library runs on the GPU, such as torch: noise is drawn and votes
// are counted there, and only counts come back.
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

/// Of f, whose function on the CPU's memory is that of `on_gpu`. The noise is add_noise()'s, bit
/// for bit.
std::unique_ptr<Sampler> function_sampler(const BaseClassifier& f, const DeviceFunction& on_gpu);

}  // namespace fedsmooth
