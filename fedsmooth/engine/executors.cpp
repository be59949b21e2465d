#include "fedsmooth/engine/executors.h"

#include "fedsmooth/base/error.h"
#include "fedsmooth/engine/threaded_executor.h"

#ifdef FEDSMOOTH_CUDA
#include "fedsmooth/engine/batched_executor.h"
#include "fedsmooth/engine/batched_plan.h"
#include "fedsmooth/engine/batched_steps.h"
#endif

namespace fedsmooth {
namespace {

// Why the network cannot be trained on a GPU; empty if it can.
std::string missing_for_gpu([[maybe_unused]] const Network& network, [[maybe_unused]] int gpu) {
#ifdef FEDSMOOTH_CUDA
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    return "this machine has no GPU, or no driver for it";
  }
  if (cudaSetDevice(gpu % devices) != cudaSuccess) return "its GPU cannot be used";
  if (find_kernels() != cudaSuccess) {
    return "this build has no code for this GPU; see FEDSMOOTH_CUDA_ARCHITECTURES";
  }
  if (!BatchedPlan::supports(network)) {
    return fmt::format("network {} has layers that the GPU engine cannot run", network.name);
  }
  return {};
#else
  return "this build has no CUDA engine; build it where nvcc is found";
#endif
}

}  // namespace

ChosenExecutor choose_executor(const std::string& device, int threads, const Network& network,
                               int gpu) {
  if (device != "cpu") {
    const std::string missing = missing_for_gpu(network, gpu);
#ifdef FEDSMOOTH_CUDA
    if (missing.empty()) {
      int current = 0;
      cudaDeviceProp properties;
      TORCH_CHECK(cudaGetDevice(&current) == cudaSuccess &&
                      cudaGetDeviceProperties(&properties, current) == cudaSuccess,
                  "no GPU properties");
      return {std::make_unique<BatchedExecutor>(), fmt::format("{}, bf16", properties.name)};
    }
#endif
    if (device == "cuda") throw Error("--device=cuda: {}; use --device=cpu", missing);
  }
  return {std::make_unique<ThreadedExecutor>(threads), "cpu"};
}

}  // namespace fedsmooth
