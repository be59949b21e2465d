// A base classifier that another library runs on the GPU.
#pragma once

#include <optional>

#include "fedsmooth/engine/cuda/function_sampler.h"

namespace fedsmooth {

/// function_classifier(); none in a build without CUDA, or where no GPU is found.
std::optional<BaseClassifier> device_function_classifier(const DeviceFunction& function,
                                                         const Shape& input, int classes, int batch,
                                                         const std::string& description);

}  // namespace fedsmooth
