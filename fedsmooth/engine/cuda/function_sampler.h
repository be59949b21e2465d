// Votes of a function that another library runs on the GPU, such as torch: noise is drawn and votes
// are counted there, and only counts come back.
#pragma once

#include <cuda_runtime_api.h>

#include "fedsmooth/engine/device_function.h"

namespace fedsmooth {

/// See device_function.h.
std::unique_ptr<Sampler> function_sampler(const BaseClassifier& f, const DeviceFunction& on_gpu);

}  // namespace fedsmooth
