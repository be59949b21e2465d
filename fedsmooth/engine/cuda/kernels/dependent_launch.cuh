// Overlapping launches of consecutive kernels on a stream. From compute capability 9.0 on, a kernel
// may begin while the one before it ends: it sets itself up, and waits before it accesses memory
// that the one before reads or writes. On other GPUs these are plain launches.
#pragma once

#include <cuda_runtime_api.h>

#include "fedsmooth/engine/cuda/kernels/this_gpu.h"

namespace fedsmooth {

/// Lets the next kernel on the stream begin once every block of this one has called this.
inline __device__ void let_next_kernel_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/// Waits until the kernel before, which let this one begin, is done.
inline __device__ void wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Waits until all earlier kernels are done. Every kernel of launch_dependent() must call it, in
/// every thread, before its first access to global memory. The only exception is bias_kernel, which
/// explains why.
inline __device__ void wait_for_earlier_kernels() {
  wait_for_kernel_before();
  let_next_kernel_begin();  // only now: the next kernel may rely on all kernels before this one
}

/// Returns whether launch_dependent() overlaps kernels on the current GPU.
inline bool overlaps_kernels() { return compute_capability() >= 90; }

/// Launches a kernel that may begin before the one before it on the stream ends. It must wait as
/// wait_for_earlier_kernels() says. `bytes` is its dynamic shared memory. Returns the launch's
/// status, and does not wait.
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
