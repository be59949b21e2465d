// Sums over the threads of a block of kThreads threads.
#pragma once

#include "fedsmooth/engine/cuda/kernels/wave/batched_values.cuh"

namespace fedsmooth {

// Returns the sum over a block, in a fixed order, to all its threads. Every thread must call it.
template <typename Number>
__device__ Number sum_block(Number value) {
  __shared__ Number parts[kThreads / 32];
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_down_sync(~0u, value, distance);
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  Number sum = parts[0];
  for (int i = 1; i < kThreads / 32; ++i) sum += parts[i];
  return sum;
}

}  // namespace fedsmooth
