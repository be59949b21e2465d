// Each block computes a row. All of a thread's cells (of eight channels) have the same channels, so
// that sums are first over a thread, then a warp, the block, and last a group of channels.
#include "fedsmooth/engine/cuda/kernels/rows/row_group_norm.h"

#include "fedsmooth/engine/cuda/kernels/dependent_launch.cuh"
#include "fedsmooth/engine/cuda/kernels/wave/batched_values.cuh"

namespace fedsmooth {
namespace {

constexpr int kMostChannels = 64, kWarps = kThreads / 32;
constexpr int kTogether = 4;       // cells that a thread reads at the same time
constexpr float kEpsilon = 1e-5f;  // as in model/network.h

struct BlockRow {
  int64_t row, first;  // index among the rows of all clients; index of its first cell
  int cells, channel;  // number of cells of the row; first of the thread's eight channels

  __device__ BlockRow(int rows, const MapShape& map) {
    const int eights = map.channels / 8;
    row = static_cast<int64_t>(blockIdx.y) * rows + blockIdx.x;
    cells = map.pixels() * eights;
    first = row * cells;
    channel = threadIdx.x % eights * 8;
  }

  // Calls each(cell, a, b) with the values of two maps in the thread's cells; zeros if b is null.
  template <typename T, class Each>
  __device__ void for_each_cell(const void* a, const void* b, const Each& each) const {
    for (int begin = threadIdx.x; begin < cells; begin += kTogether * kThreads) {
      Eight<T> of_a[kTogether], of_b[kTogether] = {};
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        const int cell = begin + k * kThreads;
        if (cell >= cells) break;
        of_a[k] = load_eight<T>(a, first + cell);
        if (b != nullptr) of_b[k] = load_eight<T>(b, first + cell);
      }
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        const int cell = begin + k * kThreads;
        if (cell >= cells) break;
        each(first + cell, of_a[k], of_b[k]);
      }
    }
  }
};

// Computes sums over the block's threads for each channel, which all threads may read afterwards.
template <int kKinds>
__device__ void add_over_block(int channels, float (&own)[kKinds][8],
                               float (&sums)[kKinds][kMostChannels]) {
  __shared__ float of_warps[kWarps][kKinds][kMostChannels];
  const int eights = channels / 8, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int i = 0; i < 8 * kKinds; ++i) {
    float& sum = own[i / 8][i % 8];
    for (int distance = eights; distance < 32; distance *= 2) {
      sum += __shfl_xor_sync(~0u, sum, distance);
    }
    if (lane < eights) of_warps[warp][i / 8][lane * 8 + i % 8] = sum;
  }
  __syncthreads();
  if (threadIdx.x < kKinds * channels) {
    const int kind = threadIdx.x / channels, channel = threadIdx.x % channels;
    float sum = 0.0f;
    for (int w = 0; w < kWarps; ++w) sum += of_warps[w][kind][channel];
    sums[kind][channel] = sum;
  }
  __syncthreads();
}

// Returns the mean over a channel's group, from the sums of the group's channels.
__device__ float mean_of_group(const ChannelGroups& groups, int pixels, const float* sums,
                               int channel) {
  const int first = channel / groups.channels * groups.channels;
  float sum = 0.0f;
  for (int c = first; c < first + groups.channels; ++c) sum += sums[c];
  return sum / static_cast<float>(groups.channels * pixels);
}

template <typename T>
__global__ void __launch_bounds__(kThreads) apply_kernel(GroupNorm n) {
  __shared__ float sums[1][kMostChannels];
  __shared__ GroupValues values[kMostChannels];
  wait_for_earlier_kernels();
  const BlockRow row(n.rows, n.map);
  const bool real = threadIdx.x < n.groups.real_channels();
  if (threadIdx.x < kMostChannels) values[threadIdx.x] = {};
  float own[1][8] = {};
  row.for_each_cell<T>(n.x, nullptr, [&](int64_t, const Eight<T>& x, const Eight<T>&) {
#pragma unroll
    for (int j = 0; j < 8; ++j) own[0][j] += to_float(x.value[j]);
  });
  add_over_block(n.map.channels, own, sums);
  if (real) {
    values[threadIdx.x].mean = mean_of_group(n.groups, n.map.pixels(), sums[0], threadIdx.x);
  }
  __syncthreads();
  float mean[8];
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    mean[j] = values[row.channel + j].mean;
    own[0][j] = 0.0f;
  }
  row.for_each_cell<T>(n.x, nullptr, [&](int64_t, const Eight<T>& x, const Eight<T>&) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float difference = to_float(x.value[j]) - mean[j];
      own[0][j] += difference * difference;
    }
  });
  add_over_block(n.map.channels, own, sums);
  if (real) {
    const float variance = mean_of_group(n.groups, n.map.pixels(), sums[0], threadIdx.x);
    values[threadIdx.x].inverse = 1.0f / sqrtf(variance + kEpsilon);
  }
  __syncthreads();
  if (n.values != nullptr && threadIdx.x < n.map.channels) {
    n.values[row.row * n.map.channels + threadIdx.x] = values[threadIdx.x];
  }
  const float* vector = n.weights.vectors + blockIdx.y * n.weights.size;
  float scale[8], bias[8];
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    scale[j] = vector[n.weights.scale + row.channel + j] * values[row.channel + j].inverse;
    bias[j] = vector[n.weights.bias + row.channel + j];
  }
  row.for_each_cell<T>(n.x, n.add, [&](int64_t cell, const Eight<T>& x, const Eight<T>& add) {
    Eight<T> y;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      float value = scale[j] * (to_float(x.value[j]) - mean[j]) + bias[j];
      if (n.add != nullptr) value += to_float(add.value[j]);
      if (n.relu && value < 0.0f) value = 0.0f;
      store(y.value + j, value);
    }
    store_eight(n.y, cell, y);
  });
}

// With n = (x - mean) inverse and e = weight dy: dx = inverse (e - mean(e) - n mean(e n)), the
// means over a group of the row.
template <typename T>
__global__ void __launch_bounds__(kThreads) gradient_kernel(GroupNormGradient g) {
  __shared__ float sums[2][kMostChannels], means[2][kMostChannels];
  wait_for_earlier_kernels();
  const BlockRow row(g.rows, g.map);
  const GroupValues* values = g.values + row.row * g.map.channels;
  const float* weights = g.weights.vectors + blockIdx.y * g.weights.size + g.weights.scale;
  float mean[8], inverse[8], weight[8];
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    mean[j] = values[row.channel + j].mean;
    inverse[j] = values[row.channel + j].inverse;
    weight[j] = weights[row.channel + j];
  }
  float own[2][8] = {};
  row.for_each_cell<T>(g.x, g.dy, [&](int64_t, const Eight<T>& x, const Eight<T>& dy) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float value = to_float(dy.value[j]);
      own[0][j] += value;
      own[1][j] += value * ((to_float(x.value[j]) - mean[j]) * inverse[j]);
    }
  });
  add_over_block(g.map.channels, own, sums);
  const int kind = threadIdx.x / g.map.channels, channel = threadIdx.x % g.map.channels;
  if (kind < 2) {
    if (g.sums != nullptr) {
      g.sums[(row.row * 2 + kind) * g.map.channels + channel] = sums[kind][channel];
    }
    sums[kind][channel] *= weights[channel];
  }
  __syncthreads();
  if (kind < 2) {
    means[kind][channel] = channel < g.groups.real_channels()
                               ? mean_of_group(g.groups, g.map.pixels(), sums[kind], channel)
                               : 0.0f;
  }
  __syncthreads();
  float mean_e[8], mean_product[8];
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    mean_e[j] = means[0][row.channel + j];
    mean_product[j] = means[1][row.channel + j];
  }
  row.for_each_cell<T>(g.x, g.dy, [&](int64_t cell, const Eight<T>& x, const Eight<T>& dy) {
    Eight<T> dx;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float n = (to_float(x.value[j]) - mean[j]) * inverse[j];
      const float centred = weight[j] * to_float(dy.value[j]) - mean_e[j];
      store(dx.value + j, inverse[j] * (centred - n * mean_product[j]));
    }
    store_eight(g.dx, cell, dx);
  });
}

}  // namespace

cudaError_t apply_group_norm(Precision precision, const GroupNorm& n, cudaStream_t stream) {
  const dim3 grid(n.rows, n.clients);
  const auto kernel = precision == Precision::kBfloat16 ? apply_kernel<bf16> : apply_kernel<float>;
  return launch_dependent(kernel, grid, kThreads, 0, stream, n);
}

cudaError_t differentiate_group_norm(Precision precision, const GroupNormGradient& g,
                                     cudaStream_t stream) {
  const dim3 grid(g.rows, g.clients);
  const auto kernel =
      precision == Precision::kBfloat16 ? gradient_kernel<bf16> : gradient_kernel<float>;
  return launch_dependent(kernel, grid, kThreads, 0, stream, g);
}

}  // namespace fedsmooth
