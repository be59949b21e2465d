// A function that another library, such as torch, runs on the GPU, as a base classifier. Noise is
// drawn and votes are counted on the GPU, and only counts are copied back.
#pragma once

#include <functional>

#include "fedsmooth/model/network.h"
#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

struct DeviceFunction {
  /// Maps images, float32 [batch, C, H, W], to logits, float32 [batch, classes], both in the GPU's
  /// memory, by work on `stream`. It may overwrite the images. The logits must stay valid until the
  /// next call.
  std::function<const float*(float* images, const Sizes& sizes)> call;
  int gpu = 0;
  void* stream = nullptr;  // the cudaStream_t on which it runs; it must outlive the classifier
};

/// Returns the function, for images of shape `input`, as a base classifier. Votes, check and probe
/// all call the function, on its stream.
BaseClassifier function_classifier(const DeviceFunction& function, const Shape& input, int classes,
                                   int batch, const std::string& description);

}  // namespace fedsmooth
