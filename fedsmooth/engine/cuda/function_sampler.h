// A function that another library runs on the GPU, such as torch, as a base classifier: noise is
// drawn and votes are counted there, and only counts come back.
#pragma once

#include <functional>

#include "fedsmooth/model/network.h"
#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

struct DeviceFunction {
  /// Images float32 [batch, C, H, W], which it may overwrite, to logits float32 [batch, classes],
  /// both in the GPU's memory. The logits stay until the next call.
  std::function<const float*(float* images, const Sizes& sizes)> call;
  int gpu = 0;
  void* stream = nullptr;  // a cudaStream_t, on which the function runs; it outlives the classifier
};

/// For images of shape `input`. What counts the votes is what is checked and probed: every
/// evaluation is a call of the function, on its stream.
BaseClassifier function_classifier(const DeviceFunction& function, const Shape& input, int classes,
                                   int batch, const std::string& description);

}  // namespace fedsmooth
