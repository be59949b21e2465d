// Group norm of maps of 65 to 2048 channels. Sums are first over a thread, then the threads with
// the same channels, and last, by a warp, over a group of channels.
#include "fedsmooth/engine/cuda/kernels/rows/group_norm_rows.cuh"

namespace fedsmooth {
namespace {

constexpr int kWarps = kThreads / 32;

// The block's shared memory.
struct Shared {
  float (*own)[9];         // [thread]: sums of its channels; 9 avoids bank conflicts along a column
  float* sums;             // [channel]
  GroupValues* of_groups;  // [channel]: two numbers of its group; zeros for those that fill up

  static int bytes(int channels) {
    return static_cast<int>(kThreads * sizeof(float[9]) +
                            channels * (sizeof(float) + sizeof(GroupValues)));
  }
  __device__ Shared(float* memory, int channels)
      : own(reinterpret_cast<float (*)[9]>(memory)),
        sums(memory + kThreads * 9),
        of_groups(reinterpret_cast<GroupValues*>(sums + channels)) {}
};

// Computes sums over the block's threads for each channel, which all threads may read afterwards.
__device__ void add_over_block(int channels, const float (&own)[8], const Shared& shared) {
  const int eights = channels / 8, threads = threads_with_cells(channels);
#pragma unroll
  for (int j = 0; j < 8; ++j) shared.own[threadIdx.x][j] = own[j];
  __syncthreads();
  for (int channel = threadIdx.x; channel < channels; channel += kThreads) {
    float sum = 0.0f;
    for (int t = channel / 8; t < threads; t += eights) sum += shared.own[t][channel % 8];
    shared.sums[channel] = sum;
  }
  __syncthreads();
}

// Calls put(channel, mean) for each channel of each group, with the mean over the group. All
// threads may read afterwards what it wrote to shared memory, and write the sums.
template <class Put>
__device__ void for_each_mean(const ChannelGroups& groups, int pixels, const Shared& shared,
                              const Put& put) {
  const int lane = threadIdx.x % 32;
  for (int group = threadIdx.x / 32; group < groups.count; group += kWarps) {
    const int first = group * groups.channels, end = first + groups.channels;
    float sum = 0.0f;
    for (int c = first + lane; c < end; c += 32) sum += shared.sums[c];
    for (int distance = 16; distance > 0; distance /= 2) {
      sum += __shfl_xor_sync(~0u, sum, distance);
    }
    const float mean = sum / static_cast<float>(groups.channels * pixels);
    for (int c = first + lane; c < end; c += 32) put(c, mean);
  }
  __syncthreads();
}

template <typename T>
__global__ void __launch_bounds__(kThreads) apply_kernel(GroupNorm n) {
  extern __shared__ float memory[];
  const int channels = n.map.channels, pixels = n.map.pixels();
  const Shared shared(memory, channels);
  wait_for_earlier_kernels();
  const BlockRow row(n.rows, n.map);
  for (int c = threadIdx.x; c < channels; c += kThreads) shared.of_groups[c] = {};
  float own[1][8] = {};
  add_values<T>(row, n.x, own);
  add_over_block(channels, own[0], shared);
  for_each_mean(n.groups, pixels, shared,
                [&](int channel, float mean) { shared.of_groups[channel].mean = mean; });
  float mean[8];
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    mean[j] = shared.of_groups[row.channel + j].mean;
    own[0][j] = 0.0f;
  }
  add_squares<T>(row, n.x, mean, own);
  add_over_block(channels, own[0], shared);
  for_each_mean(n.groups, pixels, shared, [&](int channel, float variance) {
    shared.of_groups[channel].inverse = 1.0f / sqrtf(variance + kGroupEpsilon);
  });
  if (n.values != nullptr) {
    for (int c = threadIdx.x; c < channels; c += kThreads) {
      n.values[row.row * channels + c] = shared.of_groups[c];
    }
  }
  write_normed<T>(n, row, shared.of_groups);
}

// See gradient_kernel of row_group_norm.cu.
template <typename T>
__global__ void __launch_bounds__(kThreads) gradient_kernel(GroupNormGradient g) {
  extern __shared__ float memory[];
  const int channels = g.map.channels;
  const Shared shared(memory, channels);
  float* means = reinterpret_cast<float*>(shared.of_groups);  // [2, channel]
  wait_for_earlier_kernels();
  const BlockRow row(g.rows, g.map);
  const float* weights = g.weights.vectors + blockIdx.y * g.weights.size + g.weights.scale;
  const GradientFactors factors(g, row);
  for (int i = threadIdx.x; i < 2 * channels; i += kThreads) means[i] = 0.0f;
  float own[2][8] = {};
  add_products<T>(g, row, factors, own);
#pragma unroll
  for (int kind = 0; kind < 2; ++kind) {
    add_over_block(channels, own[kind], shared);
    for (int c = threadIdx.x; c < channels; c += kThreads) {
      if (g.sums != nullptr) g.sums[(row.row * 2 + kind) * channels + c] = shared.sums[c];
      shared.sums[c] *= weights[c];
    }
    __syncthreads();
    for_each_mean(g.groups, g.map.pixels(), shared,
                  [&](int channel, float mean) { means[kind * channels + channel] = mean; });
  }
  write_gradient<T>(g, row, factors, means, means + channels);
}

}  // namespace

cudaError_t apply_wide_group_norm(Precision precision, const GroupNorm& n, cudaStream_t stream) {
  const auto kernel = precision == Precision::kBfloat16 ? apply_kernel<bf16> : apply_kernel<float>;
  return launch_dependent(kernel, dim3(n.rows, n.clients), kThreads, Shared::bytes(n.map.channels),
                          stream, n);
}

cudaError_t differentiate_wide_group_norm(Precision precision, const GroupNormGradient& g,
                                          cudaStream_t stream) {
  const auto kernel =
      precision == Precision::kBfloat16 ? gradient_kernel<bf16> : gradient_kernel<float>;
  return launch_dependent(kernel, dim3(g.rows, g.clients), kThreads, Shared::bytes(g.map.channels),
                          stream, g);
}

}  // namespace fedsmooth
