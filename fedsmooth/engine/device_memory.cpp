#include "fedsmooth/engine/device_memory.h"

#include <c10/util/Exception.h>

namespace fedsmooth {

void check_cuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears it
  if (status == cudaErrorMemoryAllocation) throw OutOfDeviceMemory{};
  TORCH_CHECK(false, what, ": ", cudaGetErrorString(status));
}

}  // namespace fedsmooth
