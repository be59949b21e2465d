#include "fedsmooth/engine/cuda/kernels/rows/row_head.h"

#include "fedsmooth/engine/cuda/kernels/rows/row_cells.cuh"

namespace fedsmooth {
namespace {

constexpr int kMostChannels = 2048, kMostFewFeatures = 64;

// Writes the means over all pixels of a row. All of a thread's cells have the same channels.
template <typename T>
__device__ void write_means(const RowHead& h, int64_t row, float* means) {
  __shared__ float sums[kThreads][9];  // 9 avoids bank conflicts along a column
  const int eights = h.map.channels / 8, cells = h.map.pixels() * eights;
  const int threads = kThreads / eights * eights;
  float own[8] = {};
  if (threadIdx.x < threads) {
    for (int i = threadIdx.x; i < cells; i += threads) {
      add_eight(own, load_eight<T>(h.x, row * cells + i));
    }
  }
  for (int j = 0; j < 8; ++j) sums[threadIdx.x][j] = own[j];
  __syncthreads();
  for (int channel = threadIdx.x; channel < h.map.channels; channel += kThreads) {
    float sum = 0.0f;
    for (int t = channel / 8; t < threads; t += eights) sum += sums[t][channel % 8];
    means[channel] = sum / static_cast<float>(h.map.pixels());
  }
}

// Writes all values of a row.
template <typename T>
__device__ void write_values(const RowHead& h, int64_t row, float* values) {
  const int cells = static_cast<int>(h.map.row_size() / 8);
  for (int i = threadIdx.x; i < cells; i += kThreads) {
    const Eight<T> x = load_eight<T>(h.x, row * cells + i);
#pragma unroll
    for (int j = 0; j < 8; ++j) values[i * 8 + j] = to_float(x.value[j]);
  }
}

// Each block computes a row.
template <typename T>
__global__ void __launch_bounds__(kThreads) answer_kernel(RowHead h) {
  const int client = blockIdx.y, features = static_cast<int>(h.features());
  const int64_t row = static_cast<int64_t>(client) * h.rows + blockIdx.x;
  float* values = h.means + row * features;
  if (h.flat) {
    write_values<T>(h, row, values);
  } else {
    write_means<T>(h, row, values);
  }
  __syncthreads();
  const float* vector = h.vectors + client * h.size;
  // Threads share classes out, or, of many features, each warp those of a class.
  const int together = features > kMostFewFeatures ? 32 : 1, lane = threadIdx.x % together;
  for (int k = threadIdx.x / together; k < h.classes; k += kThreads / together) {
    float sum = h.has_bias && lane == 0 ? vector[h.bias + k] : 0.0f;
    const float* weight = vector + h.weight + static_cast<int64_t>(k) * features;
    for (int c = lane; c < features; c += together) sum += values[c] * weight[c];
    for (int distance = together / 2; distance > 0; distance /= 2) {
      sum += __shfl_xor_sync(~0u, sum, distance);
    }
    if (lane == 0) h.logits[row * h.classes + k] = sum;
  }
}

// Returns the gradient of a feature.
__device__ float feature_gradient(const RowHeadGradient& g, int64_t row, const float* vector,
                                  int64_t feature) {
  const RowHead& h = g.head;
  const float* weight = vector + h.weight + feature;
  float sum = 0.0f;
  for (int k = 0; k < h.classes; ++k) {
    sum += g.dlogits[row * h.classes + k] * weight[k * h.features()];
  }
  return sum;
}

// Each block computes a row.
template <typename T>
__global__ void __launch_bounds__(kThreads) features_gradient_kernel(RowHeadGradient g) {
  __shared__ float dmeans[kMostChannels];
  const RowHead& h = g.head;
  const int client = blockIdx.y, eights = h.map.channels / 8;
  const int64_t row = static_cast<int64_t>(client) * h.rows + blockIdx.x;
  const float* vector = h.vectors + client * h.size;
  if (!h.flat) {
    for (int channel = threadIdx.x; channel < h.map.channels; channel += kThreads) {
      dmeans[channel] =
          feature_gradient(g, row, vector, channel) / static_cast<float>(h.map.pixels());
    }
  }
  __syncthreads();
  const int cells = h.map.pixels() * eights;
  for (int i = threadIdx.x; i < cells; i += kThreads) {
    Eight<T> x = {};
    if (g.mask) x = load_eight<T>(h.x, row * cells + i);
    float gradient[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      gradient[j] = h.flat ? feature_gradient(g, row, vector, static_cast<int64_t>(i) * 8 + j)
                           : dmeans[i % eights * 8 + j];
    }
    store_eight(g.dx, row * cells + i, finish_gradient(gradient, false, {}, g.mask, x));
  }
}

// Each block computes the gradient of one class (blockIdx.z) and a slice of features (blockIdx.x)
// of a client. Threads share the rows out, and the first ones add the sums up in order.
__global__ void __launch_bounds__(kThreads)
    linear_gradient_kernel(RowHeadGradient g, float* gradients) {
  __shared__ float sums[2][kThreads];
  const RowHead& h = g.head;
  const int k = blockIdx.z, client = blockIdx.y, width = slice_width(h.features());
  const int within = threadIdx.x % width, lane = threadIdx.x / width;
  const int lanes = kThreads / width;
  const int64_t features = h.features(),
                feature = static_cast<int64_t>(blockIdx.x) * width + within;
  float sum = 0.0f, bias = 0.0f;
#pragma unroll 8
  for (int i = lane; i < h.rows; i += lanes) {
    const int64_t row = static_cast<int64_t>(client) * h.rows + i;
    const float dlogit = g.dlogits[row * h.classes + k];
    sum += dlogit * h.means[row * features + feature];
    bias += dlogit;
  }
  sums[0][threadIdx.x] = sum;
  sums[1][threadIdx.x] = bias;
  __syncthreads();
  if (lane > 0) return;
  for (int i = 1; i < lanes; ++i) {
    sum += sums[0][i * width + within];
    bias += sums[1][i * width + within];
  }
  gradients[client * h.size + h.weight + k * features + feature] = sum;
  if (feature == 0 && h.has_bias) gradients[client * h.size + h.bias + k] = bias;
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
    features_gradient_kernel<decltype(value)><<<grid, kThreads, 0, stream>>>(g);
  });
}

cudaError_t differentiate_linear(const RowHeadGradient& g, float* gradients, cudaStream_t stream) {
  const dim3 grid(slices_of(g.head.features()), g.head.clients, g.head.classes);
  linear_gradient_kernel<<<grid, kThreads, 0, stream>>>(g, gradients);
  return cudaGetLastError();
}

}  // namespace fedsmooth
