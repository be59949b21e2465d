#include "fedsmooth/engine/cuda/kernels/wave/batched_values.cuh"
#include "fedsmooth/engine/torch/finish_map.h"

namespace fedsmooth {
namespace {

__device__ void add_eight(float* sum, const void* from, int64_t at) {
  const Eight<bf16> values = load_eight<bf16>(from, at);
#pragma unroll
  for (int j = 0; j < 8; ++j) sum[j] += to_float(values.value[j]);
}

// Each thread finishes eight channels of a pixel.
__global__ void finish_map_kernel(UnfinishedMap u) {
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;  // division of 64 bits would be slow
  if (i >= u.size / 8) return;
  float sum[8] = {};
  add_eight(sum, u.map, i);
  if (u.bias != nullptr) add_eight(sum, u.bias, i % static_cast<uint32_t>(u.channels / 8));
  if (u.other != nullptr) add_eight(sum, u.other, i);
  Eight<bf16> out;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    store(out.value + j, u.relu && sum[j] < 0.0f ? 0.0f : sum[j]);  // NaN stays
  }
  store_eight(u.map, i, out);
}

}  // namespace

cudaError_t finish_map(const UnfinishedMap& u, cudaStream_t stream) {
  finish_map_kernel<<<blocks_for(u.size / 8, 1), kThreads, 0, stream>>>(u);
  return cudaGetLastError();
}

}  // namespace fedsmooth
