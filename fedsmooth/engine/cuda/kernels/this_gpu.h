// What launches ask of the calling thread's GPU. Nothing is kept between calls: a thread may go on
// to another GPU.
#pragma once

#include <cuda_runtime_api.h>

namespace fedsmooth {

/// `otherwise` where there is no GPU.
inline int gpu_attribute(cudaDeviceAttr attribute, int otherwise = 0) {
  int gpu = 0, value = otherwise;
  if (cudaGetDevice(&gpu) == cudaSuccess) cudaDeviceGetAttribute(&value, attribute, gpu);
  return value;
}

/// 90 for compute capability 9.0.
inline int compute_capability() {
  return 10 * gpu_attribute(cudaDevAttrComputeCapabilityMajor) +
         gpu_attribute(cudaDevAttrComputeCapabilityMinor);
}

/// Whether kernels for Hopper run there: they are compiled for compute capability 9.0 alone.
inline bool is_hopper() { return compute_capability() == 90; }

/// Bytes that a thread block can have.
inline int shared_memory_limit() {
  return gpu_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, 48 * 1024);
}

inline int multiprocessors() { return gpu_attribute(cudaDevAttrMultiProcessorCount); }

}  // namespace fedsmooth
