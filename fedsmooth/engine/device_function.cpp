#include "fedsmooth/engine/device_function.h"

#include "fedsmooth/engine/gpu.h"

namespace fedsmooth {

std::optional<BaseClassifier> device_function_classifier(
    [[maybe_unused]] const DeviceFunction& function, [[maybe_unused]] const Shape& input,
    [[maybe_unused]] int classes, [[maybe_unused]] int batch,
    [[maybe_unused]] const std::string& description) {
#ifdef FEDSMOOTH_CUDA
  if (gpu_unavailable_reason().empty()) {
    return function_classifier(function, input, classes, batch, description);
  }
#endif
  return std::nullopt;
}

}  // namespace fedsmooth
