#include "fedsmooth/engine/cuda/kernels/rows/row_weights.h"

#include "fedsmooth/engine/cuda/kernels/wave/batched_values.cuh"

namespace fedsmooth {
namespace {

constexpr double kEpsilon = 1e-5;  // as in model/network.h
constexpr int kTile = 64;          // channels

// Returns the number of tiles along `channels`.
__host__ __device__ inline int tiles_of(int channels) { return (channels + kTile - 1) / kTile; }

// A block's tile of a tap of a kernel, [K, C].
struct Tile {
  int tap, first_k, first_c, k, c;  // k, c: numbers of channels of the tile

  __device__ Tile(const KernelPlace& place, int block) {
    const int across = tiles_of(place.in_channels), down = tiles_of(place.out_channels);
    tap = block / (across * down);
    first_k = block / across % down * kTile;
    first_c = block % across * kTile;
    k = min(place.out_channels - first_k, kTile);
    c = min(place.in_channels - first_c, kTile);
  }
};

// Returns the factor by which a norm multiplies channel k, in double.
__device__ double factor_of(const KernelPlace& place, const float* vector, int k) {
  return vector[place.scale + k] / sqrt(vector[place.variance + k] + kEpsilon);
}

// Each block prepares a tile of a node of a client: it writes [K, C] and, through shared memory,
// [C, K].
template <typename T>
__global__ void __launch_bounds__(kThreads) prepare_kernel(WorkingWeights w) {
  __shared__ float factors[kTile];
  __shared__ T values[kTile][kTile + 2];
  const KernelPlace place = w.places[blockIdx.z];
  if (blockIdx.x >= place.taps * tiles_of(place.in_channels) * tiles_of(place.out_channels)) return;
  const Tile tile(place, blockIdx.x);
  const int client = blockIdx.y, all_c = place.in_channels, all_k = place.out_channels;
  const float* vector = w.vectors + client * w.size;
  const bool folds = w.fold && place.has_norm;
  if (threadIdx.x < tile.k) {
    const int out = tile.first_k + threadIdx.x;
    double shift = place.has_bias ? vector[place.bias + out] : 0.0;
    factors[threadIdx.x] = 1.0f;
    if (folds) {
      const double factor = factor_of(place, vector, out);
      factors[threadIdx.x] = static_cast<float>(factor);
      shift = vector[place.norm_bias + out] - (vector[place.mean + out] - shift) * factor;
    }
    if (tile.tap == 0 && tile.first_c == 0) {
      w.shift[static_cast<int64_t>(client) * w.channels + place.channel + out] =
          static_cast<float>(shift);
    }
  }
  __syncthreads();
  const int64_t kernel = client * w.working + place.weight, size = int64_t{all_k} * all_c;
  T* kernels = static_cast<T*>(w.kernels) + kernel + tile.tap * size;
  T* turned = static_cast<T*>(w.turned) + kernel + (place.taps - 1 - tile.tap) * size;
  const float* from = vector + place.weight + tile.tap * size;
  for (int i = threadIdx.x; i < tile.k * tile.c; i += kThreads) {
    const int k = i / tile.c, c = i % tile.c, out = tile.first_k + k, in = tile.first_c + c;
    const int at = out * all_c + in;
    const float value = place.fixed ? (in == out ? 1.0f : 0.0f) : from[at] * factors[k];
    store(&values[k][c], value);
    kernels[at] = values[k][c];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < tile.k * tile.c; i += kThreads) {
    const int k = i % tile.k, c = i / tile.k;
    turned[(tile.first_c + c) * all_k + tile.first_k + k] = values[k][c];
  }
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

int preparing_blocks(const KernelPlace& place) {
  return place.taps * tiles_of(place.in_channels) * tiles_of(place.out_channels);
}

cudaError_t prepare_weights(Precision precision, const WorkingWeights& w, cudaStream_t stream) {
  return launch_in(precision, [&](auto value) {
    prepare_kernel<decltype(value)><<<dim3(w.blocks, w.clients, w.nodes), kThreads, 0, stream>>>(w);
  });
}

cudaError_t step_weights(const RowStep& s, cudaStream_t stream) {
  const int64_t count = s.kernels + s.trained - s.begin;
  step_kernel<<<blocks_for(count, s.clients), kThreads, 0, stream>>>(s);
  return cudaGetLastError();
}

}  // namespace fedsmooth
