#include "fedsmooth/engine/executors.h"

#include <fmt/format.h>

#include "fedsmooth/engine/gpu.h"
#include "fedsmooth/engine/threaded_executor.h"

#ifdef FEDSMOOTH_CUDA
#include "fedsmooth/engine/cuda/batched_executor.h"
#include "fedsmooth/engine/cuda/device_memory.h"
#endif

namespace fedsmooth {

ChosenExecutor choose_executor(const std::string& device, int threads, const Network& network) {
  if (use_gpu(device, [&] { return missing_for_engine(network); })) {
#ifdef FEDSMOOTH_CUDA
    return {std::make_unique<BatchedExecutor>(), fmt::format("{}, bf16", gpu_name())};
#endif
  }
  return {std::make_unique<ThreadedExecutor>(threads), "cpu"};
}

}  // namespace fedsmooth
