// A base classifier that another library runs on the GPU.
#pragma once

#include "fedsmooth/engine/cuda/function_sampler.h"

namespace fedsmooth {

/// function_sampler(); null in a build without CUDA, or where no GPU is found.
std::unique_ptr<Sampler> make_device_sampler(const BaseClassifier& f, const DeviceFunction& on_gpu);

}  // namespace fedsmooth
