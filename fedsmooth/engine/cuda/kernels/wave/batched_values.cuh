// Reads and writes values of maps in either precision, and launches kernels for one of them.
#pragma once

#include <cuda_bf16.h>

#include "fedsmooth/engine/cuda/kernels/wave/client_settings.h"

namespace fedsmooth {

using bf16 = __nv_bfloat16;

constexpr int kThreads = 256;

inline __device__ float to_float(bf16 x) { return __bfloat162float(x); }
inline __device__ float to_float(float x) { return x; }
inline __device__ void store(bf16* to, float x) { *to = __float2bfloat16(x); }
inline __device__ void store(float* to, float x) { *to = x; }

// Eight neighbouring channels of a map, which are read and written by one access.
template <typename T>
struct alignas(16) Eight {
  T value[8];
};
template <typename T>
inline __device__ Eight<T> load_eight(const void* from, int64_t at) {
  return reinterpret_cast<const Eight<T>*>(from)[at];
}
template <typename T>
inline __device__ void store_eight(void* to, int64_t at, const Eight<T>& values) {
  reinterpret_cast<Eight<T>*>(to)[at] = values;
}

template <typename T>
inline __device__ void add_eight(float (&sums)[8], const Eight<T>& values) {
#pragma unroll
  for (int j = 0; j < 8; ++j) sums[j] += to_float(values.value[j]);
}

inline dim3 blocks_for(int64_t items, int clients) {
  return dim3(static_cast<unsigned>((items + kThreads - 1) / kThreads), clients);
}

/// Calls launch(value) with a value of the precision's type, and returns the launch's status.
template <class Launch>
cudaError_t launch_in(Precision precision, const Launch& launch) {
  if (precision == Precision::kBfloat16) {
    launch(bf16());
  } else {
    launch(0.0f);
  }
  return cudaGetLastError();
}

}  // namespace fedsmooth
