// Sums are first over a thread, then a warp, the block, and last a group of channels.
#include "fedsmooth/engine/cuda/kernels/rows/group_norm_rows.cuh"

namespace fedsmooth {
namespace {

constexpr int kMostChannels = kMostNarrowChannels, kWarps = kThreads / 32;

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
  add_values<T>(row, n.x, own);
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
  add_squares<T>(row, n.x, mean, own);
  add_over_block(n.map.channels, own, sums);
  if (real) {
    const float variance = mean_of_group(n.groups, n.map.pixels(), sums[0], threadIdx.x);
    values[threadIdx.x].inverse = 1.0f / sqrtf(variance + kGroupEpsilon);
  }
  __syncthreads();
  if (n.values != nullptr && threadIdx.x < n.map.channels) {
    n.values[row.row * n.map.channels + threadIdx.x] = values[threadIdx.x];
  }
  write_normed<T>(n, row, values);
}

// With n = (x - mean) inverse and e = weight dy: dx = inverse (e - mean(e) - n mean(e n)), the
// means over a group of the row.
template <typename T>
__global__ void __launch_bounds__(kThreads) gradient_kernel(GroupNormGradient g) {
  __shared__ float sums[2][kMostChannels], means[2][kMostChannels];
  wait_for_earlier_kernels();
  const BlockRow row(g.rows, g.map);
  const float* weights = g.weights.vectors + blockIdx.y * g.weights.size + g.weights.scale;
  const GradientFactors factors(g, row);
  float own[2][8] = {};
  add_products<T>(g, row, factors, own);
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
  write_gradient<T>(g, row, factors, means[0], means[1]);
}

}  // namespace

cudaError_t apply_group_norm(Precision precision, const GroupNorm& n, cudaStream_t stream) {
  if (n.map.channels > kMostChannels) return apply_wide_group_norm(precision, n, stream);
  const dim3 grid(n.rows, n.clients);
  const auto kernel = precision == Precision::kBfloat16 ? apply_kernel<bf16> : apply_kernel<float>;
  return launch_dependent(kernel, grid, kThreads, 0, stream, n);
}

cudaError_t differentiate_group_norm(Precision precision, const GroupNormGradient& g,
                                     cudaStream_t stream) {
  if (g.map.channels > kMostChannels) return differentiate_wide_group_norm(precision, g, stream);
  const dim3 grid(g.rows, g.clients);
  const auto kernel =
      precision == Precision::kBfloat16 ? gradient_kernel<bf16> : gradient_kernel<float>;
  return launch_dependent(kernel, grid, kThreads, 0, stream, g);
}

}  // namespace fedsmooth
