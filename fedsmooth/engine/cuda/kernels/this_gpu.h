// Properties of the calling thread's GPU that decide how kernels are launched. Each call asks the
// runtime anew, because a thread may switch to another GPU.
#pragma once

#include <cuda_runtime_api.h>

namespace fedsmooth {

/// Returns an attribute of the current GPU, or `otherwise` if there is no GPU.
inline int gpu_attribute(cudaDeviceAttr attribute, int otherwise = 0) {
  int gpu = 0, value = otherwise;
  if (cudaGetDevice(&gpu) == cudaSuccess) cudaDeviceGetAttribute(&value, attribute, gpu);
  return value;
}

/// Returns the compute capability as one number: 90 for 9.0.
inline int compute_capability() {
  return 10 * gpu_attribute(cudaDevAttrComputeCapabilityMajor) +
         gpu_attribute(cudaDevAttrComputeCapabilityMinor);
}

/// Returns whether the current GPU runs this build's kernels for Hopper, which are compiled for
/// compute capability 9.0 only. A build without them has without_hopper.cu, whose launches fail.
bool has_hopper_kernels();

/// Returns the largest shared memory of a thread block on the current GPU, in bytes.
inline int shared_memory_limit() {
  return gpu_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, 48 * 1024);
}

/// Returns the number of multiprocessors of the current GPU; 0 if there is no GPU.
inline int multiprocessors() { return gpu_attribute(cudaDevAttrMultiProcessorCount); }

}  // namespace fedsmooth
