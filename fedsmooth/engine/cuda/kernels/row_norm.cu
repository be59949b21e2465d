#include "fedsmooth/engine/cuda/kernels/row_norm.h"

#include "fedsmooth/engine/cuda/kernels/batched_values.cuh"

namespace fedsmooth {
namespace {

constexpr int kPartCells = 16 * kThreads;           // cells of eight channels that a block adds up
constexpr double kEpsilon = 1e-5, kMomentum = 0.1;  // as in model/network.h and the reference

// Two sums for each channel, of what add(cell, sums) adds for a cell of eight channels. A thread's
// cells are all of the same channels.
template <class Add>
__device__ void sum_part(int rows, const RowMap& map, float* out, const Add& add) {
  __shared__ float sums[kThreads][17];  // no bank conflicts down a column
  const int client = blockIdx.y, eights = map.channels / 8;
  const int64_t cells = static_cast<int64_t>(rows) * map.pixels() * eights;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kPartCells;
  float own[16] = {};
#pragma unroll 4
  for (int i = threadIdx.x; i < kPartCells; i += kThreads) {
    if (first + i < cells) add(client * cells + first + i, own);
  }
  for (int j = 0; j < 16; ++j) sums[threadIdx.x][j] = own[j];
  __syncthreads();
  for (int i = threadIdx.x; i < 2 * map.channels; i += kThreads) {
    const int channel = i % map.channels, kind = i / map.channels;
    float sum = 0.0f;
    for (int t = channel / 8; t < kThreads; t += eights) sum += sums[t][kind * 8 + channel % 8];
    const int64_t part = static_cast<int64_t>(client) * gridDim.x + blockIdx.x;
    out[part * 2 * map.channels + i] = sum;
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads) sum_kernel(MapSums s) {
  sum_part(s.rows, s.map, s.sums, [&](int64_t cell, float(&own)[16]) {
    const Eight<T> x = load_eight<T>(s.x, cell);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float value = to_float(x.value[j]);
      own[j] += value;
      own[8 + j] += value * value;
    }
  });
}

// Adds up the parts of a client, a channel and a kind of sum: threads take every so manieth part,
// the first adds up the threads. Returns the sum to all threads of `channel`; a block a client.
struct ChannelSums {
  double total, other;
};

__device__ ChannelSums add_parts(const float* sums, int parts, int channels) {
  __shared__ double shared[2][kThreads];
  const int channel = threadIdx.x % channels, lane = threadIdx.x / channels;
  const int lanes = kThreads / channels;
  const float* from = sums + static_cast<int64_t>(blockIdx.x) * parts * 2 * channels + channel;
  double total = 0, other = 0;
#pragma unroll 8
  for (int part = lane; part < parts; part += lanes) {
    total += from[static_cast<int64_t>(part) * 2 * channels];
    other += from[static_cast<int64_t>(part) * 2 * channels + channels];
  }
  shared[0][threadIdx.x] = total;
  shared[1][threadIdx.x] = other;
  __syncthreads();
  total = other = 0;
  for (int i = channel; i < kThreads; i += channels) {
    total += shared[0][i];
    other += shared[1][i];
  }
  return {total, other};
}

// A block a client.
__global__ void __launch_bounds__(kThreads) statistics_kernel(NormStatistics s) {
  const int client = blockIdx.x, channel = threadIdx.x;
  const ChannelSums sums = add_parts(s.sums, s.parts, s.map.channels);
  if (channel >= s.map.channels) return;
  const double count = static_cast<double>(s.rows) * s.map.pixels();
  const double mean = sums.total / count;
  const double squares = fmax(sums.other - sums.total * mean, 0.0);  // of differences from it
  const double inverse = 1 / sqrt(squares / count + kEpsilon);
  float* vector = s.weights.vectors + client * s.weights.size;
  const double scale = vector[s.weights.scale + channel] * inverse;
  NormValues& values = s.values[client * s.values_client + channel];
  values.mean = static_cast<float>(mean);
  values.inverse = static_cast<float>(inverse);
  values.scale = static_cast<float>(scale);
  values.shift = static_cast<float>(vector[s.weights.bias + channel] - mean * scale);
  const auto move = [](float& running, double now) {
    running = static_cast<float>((1 - kMomentum) * running + kMomentum * now);
  };
  move(vector[s.weights.mean + channel], mean);
  move(vector[s.weights.variance + channel], squares / fmax(count - 1, 1.0));
}

// A thread a cell of eight channels.
template <typename T>
__global__ void __launch_bounds__(kThreads) apply_kernel(NormApply a) {
  const int client = blockIdx.y, eights = a.map.channels / 8;
  const int64_t cells = static_cast<int64_t>(a.rows) * a.map.pixels() * eights;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= cells) return;
  const NormValues* values = a.values + client * a.values_client + i % eights * 8;
  const Eight<T> x = load_eight<T>(a.x, client * cells + i);
  Eight<T> add = {}, y;
  if (a.add != nullptr) add = load_eight<T>(a.add, client * cells + i);
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    float value = values[j].scale * to_float(x.value[j]) + values[j].shift;
    if (a.add != nullptr) value += to_float(add.value[j]);
    if (a.relu && value < 0.0f) value = 0.0f;
    store(y.value + j, value);
  }
  store_eight(a.y, client * cells + i, y);
}

template <typename T>
__global__ void __launch_bounds__(kThreads) gradient_sums_kernel(NormGradient g) {
  const NormValues* values = g.values + blockIdx.y * g.values_client;
  const int eights = g.map.channels / 8, first = threadIdx.x % eights * 8;
  float mean[8], inverse[8];
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    mean[j] = values[first + j].mean;
    inverse[j] = values[first + j].inverse;
  }
  sum_part(g.rows, g.map, g.sums, [&](int64_t cell, float(&own)[16]) {
    const Eight<T> dy = load_eight<T>(g.dy, cell);
    Eight<T> x = {};
    if (g.x != nullptr) x = load_eight<T>(g.x, cell);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float value = to_float(dy.value[j]);
      own[j] += value;
      own[8 + j] += value * ((to_float(x.value[j]) - mean[j]) * inverse[j]);
    }
  });
}

// A block a client.
__global__ void __launch_bounds__(kThreads) gradient_values_kernel(NormGradient g, int parts) {
  const int client = blockIdx.x, channel = threadIdx.x;
  const ChannelSums sums = add_parts(g.sums, parts, g.map.channels);
  if (channel >= g.map.channels) return;
  const double count = static_cast<double>(g.rows) * g.map.pixels();
  float* gradients = g.gradients + client * g.weights.size;
  gradients[g.weights.bias + channel] = static_cast<float>(sums.total);
  if (g.x == nullptr) return;
  gradients[g.weights.scale + channel] = static_cast<float>(sums.other);
  NormValues& values = g.values[client * g.values_client + channel];
  values.mean_dy = static_cast<float>(sums.total / count);
  values.mean_product = static_cast<float>(sums.other / count);
}

// dx = scale (dy - mean(dy) - n mean(dy n)) with n = (x - mean) inverse.
template <typename T>
__global__ void __launch_bounds__(kThreads) gradient_kernel(NormGradient g) {
  const int client = blockIdx.y, eights = g.map.channels / 8;
  const int64_t cells = static_cast<int64_t>(g.rows) * g.map.pixels() * eights;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= cells) return;
  const NormValues* values = g.values + client * g.values_client + i % eights * 8;
  const Eight<T> x = load_eight<T>(g.x, client * cells + i);
  const Eight<T> dy = load_eight<T>(g.dy, client * cells + i);
  Eight<T> dx;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const NormValues& v = values[j];
    const float n = (to_float(x.value[j]) - v.mean) * v.inverse;
    store(dx.value + j, v.scale * (to_float(dy.value[j]) - v.mean_dy - n * v.mean_product));
  }
  store_eight(g.dx, client * cells + i, dx);
}

dim3 cells_of(int rows, const RowMap& map, int clients) {
  return blocks_for(rows * map.row_size() / 8, clients);
}

}  // namespace

int map_parts(int rows, const RowMap& map) {
  return static_cast<int>((rows * map.row_size() / 8 + kPartCells - 1) / kPartCells);
}

cudaError_t sum_map(Precision precision, const MapSums& s, cudaStream_t stream) {
  const dim3 grid(map_parts(s.rows, s.map), s.clients);
  return launch_in(precision, [&](auto value) {
    sum_kernel<decltype(value)><<<grid, kThreads, 0, stream>>>(s);
  });
}

cudaError_t take_statistics(const NormStatistics& s, cudaStream_t stream) {
  statistics_kernel<<<s.clients, kThreads, 0, stream>>>(s);
  return cudaGetLastError();
}

cudaError_t apply_norm(Precision precision, const NormApply& a, cudaStream_t stream) {
  return launch_in(precision, [&](auto value) {
    apply_kernel<decltype(value)><<<cells_of(a.rows, a.map, a.clients), kThreads, 0, stream>>>(a);
  });
}

cudaError_t differentiate_norm(Precision precision, const NormGradient& g, cudaStream_t stream) {
  const int parts = map_parts(g.rows, g.map);
  return launch_in(precision, [&](auto value) {
    using T = decltype(value);
    gradient_sums_kernel<T><<<dim3(parts, g.clients), kThreads, 0, stream>>>(g);
    gradient_values_kernel<<<g.clients, kThreads, 0, stream>>>(g, parts);
    if (g.x == nullptr) return;
    gradient_kernel<T><<<cells_of(g.rows, g.map, g.clients), kThreads, 0, stream>>>(g);
  });
}

}  // namespace fedsmooth
