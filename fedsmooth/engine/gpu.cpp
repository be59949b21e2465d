#include "fedsmooth/engine/gpu.h"

#include "fedsmooth/base/error.h"

#ifdef FEDSMOOTH_CUDA
#include "fedsmooth/engine/batched_plan.h"
#include "fedsmooth/engine/batched_steps.h"
#endif

namespace fedsmooth {
namespace {

// Why the network cannot run on a GPU; empty if it can.
std::string missing_for_gpu([[maybe_unused]] const Network& network) {
#ifdef FEDSMOOTH_CUDA
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    return "this machine has no GPU, or no driver for it";
  }
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

bool use_gpu(const std::string& device, const Network& network) {
  if (device == "cpu") return false;
  const std::string missing = missing_for_gpu(network);
  if (device == "cuda" && !missing.empty()) {
    throw Error("--device=cuda: {}; use --device=cpu", missing);
  }
  return missing.empty();
}

std::string gpu_name() {
#ifdef FEDSMOOTH_CUDA
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, 0) == cudaSuccess) return properties.name;
#endif
  return "none";
}

}  // namespace fedsmooth
