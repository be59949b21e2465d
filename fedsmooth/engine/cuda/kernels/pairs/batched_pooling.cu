#include "fedsmooth/engine/cuda/kernels/pairs/batched_pooling.h"

#include "fedsmooth/engine/cuda/kernels/wave/batched_values.cuh"

namespace fedsmooth {
namespace {

template <typename T>
__global__ void pool_kernel(Pooling p) {
  const int client = blockIdx.y, size = p.rows * p.channels / 8;
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= p.out_pixels * size) return;
  const int o = i / size, within = i % size;
  const int64_t in = static_cast<int64_t>(client) * p.in_pixels * size + within;
  int w = p.windows.first[o];
  Eight<T> largest = load_eight<T>(p.x, in + p.windows.pairs[w].x * size);
  for (++w; w < p.windows.first[o + 1]; ++w) {
    const Eight<T> other = load_eight<T>(p.x, in + p.windows.pairs[w].x * size);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float a = to_float(largest.value[j]), b = to_float(other.value[j]);
      if (!(a >= b || a != a)) largest.value[j] = other.value[j];  // NaN wins
    }
  }
  store_eight(p.y, static_cast<int64_t>(client) * p.out_pixels * size + i, largest);
}

template <typename T>
__global__ void pool_gradient_kernel(Pooling p) {
  const int client = blockIdx.y, size = p.rows * p.channels / 8;
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= p.in_pixels * size) return;
  const int pixel = i / size, within = i % size;
  const int64_t in = static_cast<int64_t>(client) * p.in_pixels * size + within;
  const int64_t out = static_cast<int64_t>(client) * p.out_pixels * size + within;
  const Eight<T> own = load_eight<T>(p.x, in + static_cast<int64_t>(pixel) * size);
  float gradient[8] = {};
  for (int w = p.windows_of.first[pixel]; w < p.windows_of.first[pixel + 1]; ++w) {
    const int o = p.windows_of.pairs[w].x;
    const Eight<T> y = load_eight<T>(p.y, out + static_cast<int64_t>(o) * size);
    const Eight<T> dy = load_eight<T>(p.dy, out + static_cast<int64_t>(o) * size);
    bool first[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float x = to_float(own.value[j]);
      first[j] = x == to_float(y.value[j]) && (!p.relu || x > 0.0f);
    }
    for (int v = p.windows.first[o]; p.windows.pairs[v].x != pixel; ++v) {
      const Eight<T> before = load_eight<T>(p.x, in + p.windows.pairs[v].x * size);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        first[j] = first[j] && to_float(before.value[j]) != to_float(own.value[j]);
      }
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) gradient[j] += first[j] ? to_float(dy.value[j]) : 0.0f;
  }
  Eight<T> result;
#pragma unroll
  for (int j = 0; j < 8; ++j) store(result.value + j, gradient[j]);
  store_eight(p.dx, in + static_cast<int64_t>(pixel) * size, result);
}

}  // namespace

cudaError_t pool_maps(Precision precision, const Pooling& p, cudaStream_t stream) {
  const dim3 grid =
      blocks_for(static_cast<int64_t>(p.out_pixels) * p.rows * p.channels / 8, p.clients);
  return launch_in(precision, [&](auto value) {
    pool_kernel<decltype(value)><<<grid, kThreads, 0, stream>>>(p);
  });
}

cudaError_t pool_gradient(Precision precision, const Pooling& p, cudaStream_t stream) {
  const dim3 grid =
      blocks_for(static_cast<int64_t>(p.in_pixels) * p.rows * p.channels / 8, p.clients);
  return launch_in(precision, [&](auto value) {
    pool_gradient_kernel<decltype(value)><<<grid, kThreads, 0, stream>>>(p);
  });
}

}  // namespace fedsmooth
