#include "fedsmooth/engine/cuda/kernels/rows/row_weights.h"

#include "fedsmooth/engine/cuda/kernels/wave/batched_values.cuh"

namespace fedsmooth {
namespace {

constexpr double kEpsilon = 1e-5;  // as in model/network.h
constexpr int kMostTaps = 9;

// Returns the factor by which a norm multiplies channel k, in double.
__device__ double factor_of(const KernelPlace& place, const float* vector, int k) {
  return vector[place.scale + k] / sqrt(vector[place.variance + k] + kEpsilon);
}

// Each block prepares a tap of a node of a client: it writes [K, C] and, through shared memory,
// [C, K].
template <typename T>
__global__ void __launch_bounds__(kThreads) prepare_kernel(WorkingWeights w) {
  __shared__ float factors[64];
  __shared__ T tile[64][66];
  const KernelPlace place = w.places[blockIdx.x];
  const int client = blockIdx.y, tap = blockIdx.z, c = place.in_channels, k = place.out_channels;
  if (tap >= place.taps) return;
  const float* vector = w.vectors + client * w.size;
  const bool folds = w.fold && place.has_norm;
  if (threadIdx.x < k) {
    const int out = threadIdx.x;
    double shift = place.has_bias ? vector[place.bias + out] : 0.0;
    factors[out] = 1.0f;
    if (folds) {
      const double factor = factor_of(place, vector, out);
      factors[out] = static_cast<float>(factor);
      shift = vector[place.bias + out] - vector[place.mean + out] * factor;
    }
    if (tap == 0) {
      w.shift[static_cast<int64_t>(client) * w.channels + place.channel + out] =
          static_cast<float>(shift);
    }
  }
  __syncthreads();
  const int64_t kernel = client * w.working + place.weight;
  T* kernels = static_cast<T*>(w.kernels) + kernel + tap * k * c;
  T* turned = static_cast<T*>(w.turned) + kernel + (place.taps - 1 - tap) * k * c;
  const float* from = vector + place.weight + tap * k * c;
  for (int i = threadIdx.x; i < k * c; i += kThreads) {
    const int out = i / c, in = i % c;
    const float value = place.fixed ? (in == out ? 1.0f : 0.0f) : from[i] * factors[out];
    store(&tile[out][in], value);
    kernels[i] = tile[out][in];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < k * c; i += kThreads) turned[i] = tile[i % k][i / k];
}

__global__ void __launch_bounds__(kThreads) step_kernel(RowStep s) {
  const int client = blockIdx.y;
  int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= s.kernels) i += s.begin - s.kernels;
  if (i >= s.trained) return;
  const int64_t at = client * s.size + i;
  float gradient = 0.0f;
  if (i < s.kernels) {
#pragma unroll 8
    for (int piece = 0; piece < s.pieces; ++piece) {
      gradient +=
          s.kernel_gradients[(static_cast<int64_t>(piece) * s.clients + client) * s.kernels + i];
    }
  } else {
    gradient = s.gradients[at];
  }
  const ClientSettings c = s.settings[client];
  const float w = s.weights[at];
  if (s.global != nullptr) gradient += c.mu * (w - s.global[at]);
  const float v = c.momentum * s.velocity[at] + (gradient + c.weight_decay * w);
  s.velocity[at] = v;
  s.weights[at] = w - c.learning_rate * v;
}

}  // namespace

cudaError_t prepare_weights(Precision precision, const WorkingWeights& w, cudaStream_t stream) {
  return launch_in(precision, [&](auto value) {
    prepare_kernel<decltype(value)>
        <<<dim3(w.nodes, w.clients, kMostTaps), kThreads, 0, stream>>>(w);
  });
}

cudaError_t step_weights(const RowStep& s, cudaStream_t stream) {
  const int64_t count = s.kernels + s.trained - s.begin;
  step_kernel<<<blocks_for(count, s.clients), kThreads, 0, stream>>>(s);
  return cudaGetLastError();
}

}  // namespace fedsmooth
