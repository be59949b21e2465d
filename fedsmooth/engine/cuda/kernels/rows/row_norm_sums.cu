// Sums over a client's rows and pixels, and the numbers of a norm that follow from them.
#include "fedsmooth/engine/cuda/kernels/dependent_launch.cuh"
#include "fedsmooth/engine/cuda/kernels/rows/row_cells.cuh"
#include "fedsmooth/engine/cuda/kernels/rows/row_norm.h"

namespace fedsmooth {
namespace {

constexpr int kPartRounds = 16;
constexpr int kPartCells = kPartRounds * kThreads;  // cells of a slice that a block adds up
constexpr int kSumThreads = 1024;                   // threads that add up the parts of a slice
constexpr double kEpsilon = 1e-5, kMomentum = 0.1;  // as in model/network.h and the reference

// Computes two sums for each channel of a slice; add(cell, sums) adds a cell to them.
template <class Add>
__device__ void sum_part(const SliceCells& cells, int channels, float* out, const Add& add) {
  __shared__ float sums[kThreads][17];  // 17 avoids bank conflicts along a column
  const int width = slice_width(channels), eights = width / 8;
  float own[16] = {};
#pragma unroll 4
  for (int k = 0; k < kPartRounds; ++k) {
    if (cells.has(k)) add(cells.at(k), own);
  }
  for (int j = 0; j < 16; ++j) sums[threadIdx.x][j] = own[j];
  __syncthreads();
  for (int i = threadIdx.x; i < 2 * width; i += kThreads) {
    const int channel = i % width, kind = i / width;
    float sum = 0.0f;
    for (int t = channel / 8; t < kThreads; t += eights) sum += sums[t][kind * 8 + channel % 8];
    const int64_t part = static_cast<int64_t>(blockIdx.y) * gridDim.x + blockIdx.x;
    out[(part * 2 + kind) * channels + blockIdx.z * width + channel] = sum;
  }
}

__device__ SliceCells cells_of_part(int rows, const MapShape& map) {
  return {rows, map, static_cast<int64_t>(blockIdx.x) * kPartCells};
}

template <typename T>
__global__ void __launch_bounds__(kThreads) sum_kernel(MapSums s) {
  sum_part(cells_of_part(s.rows, s.map), s.map.channels, s.sums,
           [&](int64_t cell, float(&own)[16]) {
             const Eight<T> x = load_eight<T>(s.x, cell);
#pragma unroll
             for (int j = 0; j < 8; ++j) {
               const float value = to_float(x.value[j]);
               own[j] += value;
               own[8 + j] += value * value;
             }
           });
}

template <typename T>
__global__ void __launch_bounds__(kThreads) gradient_sums_kernel(NormGradient g) {
  wait_for_earlier_kernels();
  const SliceCells cells = cells_of_part(g.rows, g.map);
  const NormValues* values = g.values + blockIdx.y * g.values_client + cells.channel;
  float mean[8], inverse[8];
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    mean[j] = values[j].mean;
    inverse[j] = values[j].inverse;
  }
  sum_part(cells, g.map.channels, g.sums, [&](int64_t cell, float(&own)[16]) {
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

// The sums of a client and channel over all parts.
struct ChannelSums {
  double total, other;
};

// Returns to thread i < width the sums of channel i of the block's slice (blockIdx.y) of a client
// (blockIdx.x). Thread i adds up every lanes-th part of its channel; then halves of the threads are
// added to each other.
__device__ ChannelSums add_parts(const float* sums, int parts, int channels) {
  __shared__ ChannelSums shared[kSumThreads];
  const int width = slice_width(channels);
  const int channel = threadIdx.x % width, lanes = kSumThreads / width;
  const float* from =
      sums + static_cast<int64_t>(blockIdx.x) * parts * 2 * channels + blockIdx.y * width + channel;
  ChannelSums own = {};
#pragma unroll 8
  for (int part = threadIdx.x / width; part < parts; part += lanes) {
    own.total += from[static_cast<int64_t>(part) * 2 * channels];
    own.other += from[static_cast<int64_t>(part) * 2 * channels + channels];
  }
  shared[threadIdx.x] = own;
  for (int half = kSumThreads / 2; half >= width; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    shared[threadIdx.x].total += shared[threadIdx.x + half].total;
    shared[threadIdx.x].other += shared[threadIdx.x + half].other;
  }
  return shared[threadIdx.x];
}

// Sets how y follows from x, by the statistics.
__device__ void set_values(const NormWeights& weights, const float* vector, int channel,
                           double mean, double inverse, NormValues& values) {
  const double scale = vector[weights.scale + channel] * inverse;
  values.mean = static_cast<float>(mean);
  values.inverse = static_cast<float>(inverse);
  values.scale = static_cast<float>(scale);
  values.shift = static_cast<float>(vector[weights.bias + channel] - mean * scale);
}

// Each block computes a slice of a client.
__global__ void __launch_bounds__(kSumThreads) statistics_kernel(NormStatistics s) {
  const int client = blockIdx.x, width = slice_width(s.map.channels);
  const int channel = blockIdx.y * width + threadIdx.x;
  wait_for_earlier_kernels();
  const ChannelSums sums = add_parts(s.sums, s.parts, s.map.channels);
  if (threadIdx.x >= width) return;
  const double count = static_cast<double>(s.rows) * s.map.pixels();
  const double mean = sums.total / count;
  const double squares = fmax(sums.other - sums.total * mean, 0.0);  // sum of (x - mean)^2
  const double inverse = 1 / sqrt(squares / count + kEpsilon);
  float* vector = s.weights.vectors + client * s.weights.size;
  set_values(s.weights, vector, channel, mean, inverse,
             s.values[client * s.values_client + channel]);
  const auto move = [](float& running, double now) {
    running = static_cast<float>((1 - kMomentum) * running + kMomentum * now);
  };
  move(vector[s.weights.mean + channel], mean);
  move(vector[s.weights.variance + channel], squares / fmax(count - 1, 1.0));
}

__global__ void __launch_bounds__(kThreads) running_kernel(NormStatistics s) {
  const int client = blockIdx.y, channel = blockIdx.x * kThreads + threadIdx.x;
  wait_for_earlier_kernels();
  if (channel >= s.map.channels) return;
  const float* vector = s.weights.vectors + client * s.weights.size;
  const double inverse = 1 / sqrt(vector[s.weights.variance + channel] + kEpsilon);
  NormValues& values = s.values[client * s.values_client + channel];
  set_values(s.weights, vector, channel, vector[s.weights.mean + channel], inverse, values);
  values.mean_dy = values.mean_product = 0.0f;
}

// Each block computes a slice of a client.
__global__ void __launch_bounds__(kSumThreads) gradient_values_kernel(NormGradient g) {
  const int client = blockIdx.x, width = slice_width(g.map.channels);
  const int channel = blockIdx.y * width + threadIdx.x;
  wait_for_earlier_kernels();
  const ChannelSums sums = add_parts(g.sums, g.parts, g.map.channels);
  if (threadIdx.x >= width) return;
  const double count = static_cast<double>(g.rows) * g.map.pixels();
  float* gradients = g.gradients + client * g.weights.size;
  gradients[g.weights.bias + channel] = static_cast<float>(sums.total);
  if (g.x == nullptr) return;
  gradients[g.weights.scale + channel] = static_cast<float>(sums.other);
  if (g.values == nullptr) return;
  NormValues& values = g.values[client * g.values_client + channel];
  values.mean_dy = static_cast<float>(sums.total / count);
  values.mean_product = static_cast<float>(sums.other / count);
  if (g.conv_bias >= 0) gradients[g.conv_bias + channel] = 0.0f;
}

dim3 client_slices(int clients, const MapShape& map) {
  return dim3(clients, slices_of(map.channels));
}

dim3 part_slices(int rows, const MapShape& map, int clients) {
  return dim3(map_parts(rows, map), clients, slices_of(map.channels));
}

}  // namespace

int map_parts(int rows, const MapShape& map) {
  return static_cast<int>((slice_cells(rows, map) + kPartCells - 1) / kPartCells);
}

cudaError_t sum_map(Precision precision, const MapSums& s, cudaStream_t stream) {
  const dim3 grid = part_slices(s.rows, s.map, s.clients);
  return launch_in(precision, [&](auto value) {
    sum_kernel<decltype(value)><<<grid, kThreads, 0, stream>>>(s);
  });
}

cudaError_t compute_statistics(const NormStatistics& s, cudaStream_t stream) {
  return launch_dependent(statistics_kernel, client_slices(s.clients, s.map), kSumThreads, 0,
                          stream, s);
}

cudaError_t use_running_statistics(const NormStatistics& s, cudaStream_t stream) {
  return launch_dependent(running_kernel, blocks_for(s.map.channels, s.clients), kThreads, 0,
                          stream, s);
}

cudaError_t sum_norm_gradients(Precision precision, const NormGradient& g, cudaStream_t stream) {
  const dim3 grid = part_slices(g.rows, g.map, g.clients);
  return in_precision(precision, [&](auto value) {
    return launch_dependent(gradient_sums_kernel<decltype(value)>, grid, kThreads, 0, stream, g);
  });
}

cudaError_t add_norm_gradients(const NormGradient& g, cudaStream_t stream) {
  return launch_dependent(gradient_values_kernel, client_slices(g.clients, g.map), kSumThreads, 0,
                          stream, g);
}

}  // namespace fedsmooth
