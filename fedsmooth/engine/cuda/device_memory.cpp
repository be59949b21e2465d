#include "fedsmooth/engine/cuda/device_memory.h"

#include "fedsmooth/base/check.h"

namespace fedsmooth {

void check_cuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears it
  if (status == cudaErrorMemoryAllocation) throw OutOfDeviceMemory{};
  throw Bug(fmt::format("{}: {}", what, cudaGetErrorString(status)));
}

std::string gpu_name() {
  int device = 0;
  cudaDeviceProp properties;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties.name;
}

}  // namespace fedsmooth
