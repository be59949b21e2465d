#include "fedsmooth/engine/gpu.h"

#include "fedsmooth/base/error.h"

#ifdef FEDSMOOTH_CUDA
#include "fedsmooth/engine/cuda/device_network.h"
#include "fedsmooth/engine/cuda/kernels/wave/batched_steps.h"
#endif

namespace fedsmooth {
namespace {

int gpu_number = 0;

}  // namespace

void choose_gpu(int number) { gpu_number = number; }

std::string gpu_unavailable_reason() {
#ifdef FEDSMOOTH_CUDA
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    return "this machine has no GPU, or no driver for it";
  }
  int current = 0;
  cudaGetDevice(&current);
  if (cudaSetDevice(gpu_number % devices) != cudaSuccess) return "its GPU cannot be used";
  const bool has_kernels = find_kernels() == cudaSuccess;
  cudaSetDevice(current);
  if (!has_kernels) {
    return "this build has no code for this GPU; see FEDSMOOTH_CUDA_ARCHITECTURES";
  }
  return {};
#else
  return "this build has no CUDA engine; build it where nvcc is found";
#endif
}

void select_gpu() {
#ifdef FEDSMOOTH_CUDA
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0) {
    cudaSetDevice(gpu_number % devices);
  }
#endif
}

int64_t gpu_bytes_in_use() {
#ifdef FEDSMOOTH_CUDA
  size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) == cudaSuccess) return static_cast<int64_t>(total - free);
#endif
  return 0;
}

std::string missing_for_engine([[maybe_unused]] const Network& network) {
  std::string missing = gpu_unavailable_reason();
#ifdef FEDSMOOTH_CUDA
  if (missing.empty()) missing = network_refusal(network);
#endif
  return missing;
}

bool use_gpu(const std::string& device, const std::function<std::string()>& missing) {
  if (device == "cpu") return false;
  const std::string what = missing();
  if (device == "cuda" && !what.empty()) {
    throw Error("--device=cuda: {}; use --device=cpu", what);
  }
  if (what.empty()) select_gpu();
  return what.empty();
}

}  // namespace fedsmooth
