#include "fedsmooth/engine/device_function.h"

#include "fedsmooth/engine/gpu.h"

namespace fedsmooth {

std::unique_ptr<Sampler> make_device_sampler([[maybe_unused]] const BaseClassifier& f,
                                             [[maybe_unused]] const DeviceFunction& on_gpu) {
#ifdef FEDSMOOTH_CUDA
  if (gpu_unavailable_reason().empty()) return function_sampler(f, on_gpu);
#endif
  return nullptr;
}

}  // namespace fedsmooth
