#include "fedsmooth/engine/cuda/kernels/rows/row_norm.h"

#include "fedsmooth/engine/cuda/kernels/dependent_launch.cuh"
#include "fedsmooth/engine/cuda/kernels/wave/batched_values.cuh"

namespace fedsmooth {
namespace {

constexpr int kPartCells = 16 * kThreads;           // cells of eight channels that a block adds up
constexpr int kCells = 4;                           // cells that a thread writes
constexpr int kSumThreads = 1024;                   // threads that add up a client's parts
constexpr double kEpsilon = 1e-5, kMomentum = 0.1;  // as in model/network.h and the reference

// Computes two sums for each channel; add(cell, sums) adds a cell of eight channels to them. All of
// a thread's cells have the same channels.
template <class Add>
__device__ void sum_part(int rows, const MapShape& map, float* out, const Add& add) {
  __shared__ float sums[kThreads][17];  // 17 avoids bank conflicts along a column
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

// The sums of a client and channel over all parts.
struct ChannelSums {
  double total, other;
};

// Returns to thread i < channels the sums of channel i of the block's client. Thread i adds up
// every lanes-th part of its channel; then halves of the threads are added to each other.
__device__ ChannelSums add_parts(const float* sums, int parts, int channels) {
  __shared__ ChannelSums shared[kSumThreads];
  const int channel = threadIdx.x % channels, lanes = kSumThreads / channels;
  const float* from = sums + static_cast<int64_t>(blockIdx.x) * parts * 2 * channels + channel;
  ChannelSums own = {};
#pragma unroll 8
  for (int part = threadIdx.x / channels; part < parts; part += lanes) {
    own.total += from[static_cast<int64_t>(part) * 2 * channels];
    own.other += from[static_cast<int64_t>(part) * 2 * channels + channels];
  }
  shared[threadIdx.x] = own;
  for (int half = kSumThreads / 2; half >= channels; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    shared[threadIdx.x].total += shared[threadIdx.x + half].total;
    shared[threadIdx.x].other += shared[threadIdx.x + half].other;
  }
  return shared[threadIdx.x];
}

// Each block computes a client.
__global__ void __launch_bounds__(kSumThreads) statistics_kernel(NormStatistics s) {
  const int client = blockIdx.x, channel = threadIdx.x;
  wait_for_earlier_kernels();
  const ChannelSums sums = add_parts(s.sums, s.parts, s.map.channels);
  if (channel >= s.map.channels) return;
  const double count = static_cast<double>(s.rows) * s.map.pixels();
  const double mean = sums.total / count;
  const double squares = fmax(sums.other - sums.total * mean, 0.0);  // sum of (x - mean)^2
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

// The cells of eight channels of a thread: several with the same channels, so that it reads the
// norm's values once, and several cells at the same time.
struct ThreadCells {
  int client, channel;  // the first of its eight channels
  int64_t first, end;

  __device__ ThreadCells(int rows, const MapShape& map) {
    const int eights = map.channels / 8;
    const int64_t cells = static_cast<int64_t>(rows) * map.pixels() * eights;
    const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads * kCells + threadIdx.x;
    client = blockIdx.y;
    channel = static_cast<int>(i % eights) * 8;
    first = client * cells + i;
    end = (client + 1) * cells;
  }
  __device__ bool has(int k) const { return at(k) < end; }
  __device__ int64_t at(int k) const { return first + k * kThreads; }

  template <typename T>
  __device__ void load(const void* map, Eight<T> (&cells)[kCells]) const {
#pragma unroll
    for (int k = 0; k < kCells; ++k) {
      if (has(k)) cells[k] = load_eight<T>(map, at(k));
    }
  }
};

template <typename T>
__global__ void __launch_bounds__(kThreads) apply_kernel(NormApply a) {
  wait_for_earlier_kernels();
  const ThreadCells own(a.rows, a.map);
  const NormValues* values = a.values + own.client * a.values_client + own.channel;
  Eight<T> x[kCells], add[kCells] = {};
  own.load(a.x, x);
  if (a.add != nullptr) own.load(a.add, add);
  float scale[8], shift[8];
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    scale[j] = values[j].scale;
    shift[j] = values[j].shift;
  }
#pragma unroll
  for (int k = 0; k < kCells; ++k) {
    if (!own.has(k)) break;
    Eight<T> y;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      float value = scale[j] * to_float(x[k].value[j]) + shift[j];
      if (a.add != nullptr) value += to_float(add[k].value[j]);
      if (a.relu && value < 0.0f) value = 0.0f;
      store(y.value + j, value);
    }
    store_eight(a.y, own.at(k), y);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads) gradient_sums_kernel(NormGradient g) {
  wait_for_earlier_kernels();
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

// Each block computes a client.
__global__ void __launch_bounds__(kSumThreads) gradient_values_kernel(NormGradient g) {
  const int client = blockIdx.x, channel = threadIdx.x;
  wait_for_earlier_kernels();
  const ChannelSums sums = add_parts(g.sums, g.parts, g.map.channels);
  if (channel >= g.map.channels) return;
  const double count = static_cast<double>(g.rows) * g.map.pixels();
  float* gradients = g.gradients + client * g.weights.size;
  gradients[g.weights.bias + channel] = static_cast<float>(sums.total);
  if (g.x == nullptr) return;
  gradients[g.weights.scale + channel] = static_cast<float>(sums.other);
  if (g.values == nullptr) return;
  NormValues& values = g.values[client * g.values_client + channel];
  values.mean_dy = static_cast<float>(sums.total / count);
  values.mean_product = static_cast<float>(sums.other / count);
}

// dx = scale (dy - mean(dy) - n mean(dy n)) with n = (x - mean) inverse.
template <typename T>
__global__ void __launch_bounds__(kThreads) gradient_kernel(NormGradient g) {
  wait_for_earlier_kernels();
  const ThreadCells own(g.rows, g.map);
  Eight<T> x[kCells], dy[kCells];
  own.load(g.x, x);
  own.load(g.dy, dy);
  NormValues v[8];
#pragma unroll
  for (int j = 0; j < 8; ++j) v[j] = g.values[own.client * g.values_client + own.channel + j];
#pragma unroll
  for (int k = 0; k < kCells; ++k) {
    if (!own.has(k)) break;
    Eight<T> dx;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float n = (to_float(x[k].value[j]) - v[j].mean) * v[j].inverse;
      const float centred = to_float(dy[k].value[j]) - v[j].mean_dy;
      store(dx.value + j, v[j].scale * (centred - n * v[j].mean_product));
    }
    store_eight(g.dx, own.at(k), dx);
  }
}

// Returns call(value) for a value of the precision's type.
template <class Call>
cudaError_t in_precision(Precision precision, const Call& call) {
  return precision == Precision::kBfloat16 ? call(bf16()) : call(0.0f);
}

dim3 cells_of(int rows, const MapShape& map, int clients) {
  return blocks_for((rows * map.row_size() / 8 + kCells - 1) / kCells, clients);
}

}  // namespace

int map_parts(int rows, const MapShape& map) {
  return static_cast<int>((rows * map.row_size() / 8 + kPartCells - 1) / kPartCells);
}

cudaError_t sum_map(Precision precision, const MapSums& s, cudaStream_t stream) {
  const dim3 grid(map_parts(s.rows, s.map), s.clients);
  return launch_in(precision, [&](auto value) {
    sum_kernel<decltype(value)><<<grid, kThreads, 0, stream>>>(s);
  });
}

cudaError_t compute_statistics(const NormStatistics& s, cudaStream_t stream) {
  return launch_dependent(statistics_kernel, s.clients, kSumThreads, 0, stream, s);
}

cudaError_t apply_norm(Precision precision, const NormApply& a, cudaStream_t stream) {
  const dim3 cells = cells_of(a.rows, a.map, a.clients);
  return in_precision(precision, [&](auto value) {
    return launch_dependent(apply_kernel<decltype(value)>, cells, kThreads, 0, stream, a);
  });
}

cudaError_t add_norm_gradients(const NormGradient& g, cudaStream_t stream) {
  return launch_dependent(gradient_values_kernel, g.clients, kSumThreads, 0, stream, g);
}

cudaError_t differentiate_norm(Precision precision, const NormGradient& taken,
                               cudaStream_t stream) {
  NormGradient g = taken;
  return in_precision(precision, [&](auto value) {
    using T = decltype(value);
    cudaError_t status = cudaSuccess;
    if (g.parts == 0) {
      g.parts = map_parts(g.rows, g.map);
      status = launch_dependent(gradient_sums_kernel<T>, dim3(g.parts, g.clients), kThreads, 0,
                                stream, g);
    }
    if (status == cudaSuccess) status = add_norm_gradients(g, stream);
    if (status != cudaSuccess || g.x == nullptr) return status;
    const dim3 cells = cells_of(g.rows, g.map, g.clients);
    return launch_dependent(gradient_kernel<T>, cells, kThreads, 0, stream, g);
  });
}

}  // namespace fedsmooth
