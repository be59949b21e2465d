// A base classifier that another library evaluates on the GPU.
#pragma once

#include <optional>

#include "fedsmooth/engine/cuda/function_sampler.h"

namespace fedsmooth {

/// Returns function_classifier() with these arguments, or nothing in a build without CUDA or on a
/// machine without a GPU.
std::optional<BaseClassifier> device_function_classifier(const DeviceFunction& function,
                                                         const Shape& input, int classes, int batch,
                                                         const std::string& description);

}  // namespace fedsmooth
