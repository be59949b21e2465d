#include "fedsmooth/engine/cuda/kernels/rows/row_head.h"

#include "fedsmooth/engine/cuda/kernels/wave/batched_values.cuh"

namespace fedsmooth {
namespace {

// Each block computes a row.
template <typename T>
__global__ void __launch_bounds__(kThreads) answer_kernel(RowHead h) {
  __shared__ float sums[kThreads][9], means[64];  // 9 avoids bank conflicts along a column
  const int client = blockIdx.y, eights = h.map.channels / 8;
  const int64_t row = static_cast<int64_t>(client) * h.rows + blockIdx.x;
  const int cells = h.map.pixels() * eights;
  float own[8] = {};
  for (int i = threadIdx.x; i < cells; i += kThreads) {
    const Eight<T> x = load_eight<T>(h.x, row * cells + i);
#pragma unroll
    for (int j = 0; j < 8; ++j) own[j] += to_float(x.value[j]);
  }
  for (int j = 0; j < 8; ++j) sums[threadIdx.x][j] = own[j];
  __syncthreads();
  if (threadIdx.x < h.map.channels) {
    const int channel = threadIdx.x;
    float sum = 0.0f;
    for (int t = channel / 8; t < kThreads; t += eights) sum += sums[t][channel % 8];
    means[channel] = sum / static_cast<float>(h.map.pixels());
    h.means[row * h.map.channels + channel] = means[channel];
  }
  __syncthreads();
  const float* vector = h.vectors + client * h.size;
  for (int k = threadIdx.x; k < h.classes; k += kThreads) {
    float sum = h.has_bias ? vector[h.bias + k] : 0.0f;
    const float* weight = vector + h.weight + k * h.map.channels;
    for (int c = 0; c < h.map.channels; ++c) sum += means[c] * weight[c];
    h.logits[row * h.classes + k] = sum;
  }
}

// Each block computes a row.
template <typename T>
__global__ void __launch_bounds__(kThreads) means_gradient_kernel(RowHeadGradient g) {
  __shared__ float dmeans[64];
  const RowHead& h = g.head;
  const int client = blockIdx.y, eights = h.map.channels / 8;
  const int64_t row = static_cast<int64_t>(client) * h.rows + blockIdx.x;
  if (threadIdx.x < h.map.channels) {
    const float* weight = h.vectors + client * h.size + h.weight + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < h.classes; ++k) {
      sum += g.dlogits[row * h.classes + k] * weight[k * h.map.channels];
    }
    dmeans[threadIdx.x] = sum / static_cast<float>(h.map.pixels());
  }
  __syncthreads();
  const int cells = h.map.pixels() * eights;
  for (int i = threadIdx.x; i < cells; i += kThreads) {
    const Eight<T> x = load_eight<T>(h.x, row * cells + i);
    Eight<T> dx;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const bool passes = !g.mask || to_float(x.value[j]) > 0.0f;
      store(dx.value + j, passes ? dmeans[i % eights * 8 + j] : 0.0f);
    }
    store_eight(g.dx, row * cells + i, dx);
  }
}

// Each block computes the gradient of one class of a client. Threads share the rows out, and the
// first ones add the sums up in order.
__global__ void __launch_bounds__(kThreads)
    linear_gradient_kernel(RowHeadGradient g, float* gradients) {
  __shared__ float sums[2][kThreads];
  const RowHead& h = g.head;
  const int k = blockIdx.x, client = blockIdx.y, channels = h.map.channels;
  const int channel = threadIdx.x % channels, lane = threadIdx.x / channels;
  const int lanes = kThreads / channels;
  float sum = 0.0f, bias = 0.0f;
#pragma unroll 8
  for (int i = lane; i < h.rows; i += lanes) {
    const int64_t row = static_cast<int64_t>(client) * h.rows + i;
    const float dlogit = g.dlogits[row * h.classes + k];
    sum += dlogit * h.means[row * channels + channel];
    bias += dlogit;
  }
  sums[0][threadIdx.x] = sum;
  sums[1][threadIdx.x] = bias;
  __syncthreads();
  if (lane > 0) return;
  for (int i = 1; i < lanes; ++i) {
    sum += sums[0][i * channels + channel];
    bias += sums[1][i * channels + channel];
  }
  gradients[client * h.size + h.weight + k * channels + channel] = sum;
  if (channel == 0 && h.has_bias) gradients[client * h.size + h.bias + k] = bias;
}

}  // namespace

cudaError_t answer_rows(Precision precision, const RowHead& h, cudaStream_t stream) {
  return launch_in(precision, [&](auto value) {
    answer_kernel<decltype(value)><<<dim3(h.rows, h.clients), kThreads, 0, stream>>>(h);
  });
}

cudaError_t differentiate_means(Precision precision, const RowHeadGradient& g,
                                cudaStream_t stream) {
  const dim3 grid(g.head.rows, g.head.clients);
  return launch_in(precision, [&](auto value) {
    means_gradient_kernel<decltype(value)><<<grid, kThreads, 0, stream>>>(g);
  });
}

cudaError_t differentiate_linear(const RowHeadGradient& g, float* gradients, cudaStream_t stream) {
  const dim3 grid(g.head.classes, g.head.clients);
  linear_gradient_kernel<<<grid, kThreads, 0, stream>>>(g, gradients);
  return cudaGetLastError();
}

}  // namespace fedsmooth
