// Launches of kernels that follow each other on a stream. From compute capability 9.0 on, a kernel
// may begin while the one before it ends: it sets itself up, and waits before it touches what
// earlier kernels read or write. Elsewhere these are plain launches.
#pragma once

#include <cuda_runtime_api.h>

namespace fedsmooth {

/// Until all earlier kernels are done. Every kernel of launch_dependent() calls it, in every
/// thread, before its first access to global memory.
inline __device__ void wait_for_earlier_kernels() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  // Not before: the next kernel may then count on all but this one.
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

inline bool overlaps_kernels() {
  int device = 0, major = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  return major >= 9;
}

template <class... Parameters, class... Arguments>
cudaError_t launch_dependent(void (*kernel)(Parameters...), dim3 grid, int threads, int bytes,
                             cudaStream_t stream, const Arguments&... arguments) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = overlaps_kernels() ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
}

}  // namespace fedsmooth
