// Launches of kernels that follow each other on a stream. From compute capability 9.0 on, a kernel
// may begin while the one before it ends: it sets itself up, and waits before it touches what
// the one before reads or writes. Elsewhere these are plain launches.
#pragma once

#include <cuda_runtime_api.h>

#include "fedsmooth/engine/cuda/kernels/this_gpu.h"

namespace fedsmooth {

/// Lets the next kernel begin once every block of this one has called it.
inline __device__ void let_next_kernel_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/// Until the kernel before, which let this one begin, is done.
inline __device__ void wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Until all earlier kernels are done. Every kernel of launch_dependent() calls it, in every
/// thread, before its first access to global memory; bias_kernel alone says why it does not.
inline __device__ void wait_for_earlier_kernels() {
  wait_for_kernel_before();
  let_next_kernel_begin();  // not before: that one may then count on all but this one
}

inline bool overlaps_kernels() { return compute_capability() >= 90; }

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
