#include <algorithm>

#include "fedsmooth/engine/cuda/kernels/dependent_launch.cuh"
#include "fedsmooth/engine/cuda/kernels/pairs/batched_weights.h"
#include "fedsmooth/engine/cuda/kernels/wave/batched_values.cuh"

namespace fedsmooth {
namespace {

// Returns the number of parts of a channel's sum. A part sums every parts-th row; then the parts
// are added in order. The number depends on the layer's shape alone, because it decides the sum's
// bits.
inline __host__ __device__ int bias_parts(const BiasUpdate& u) {
  const int parts = 1024 / (u.channels / 8), rows = u.pixels * u.rows;
  return parts < rows ? parts : rows;
}

// Returns a block's channels in groups of eight: as many as give each thread one part, but at least
// four groups, so that a block reads at least 64 bytes of a row.
inline __host__ __device__ int bias_eights(const BiasUpdate& u) {
  constexpr int kFewest = 4;
  const int even = kThreads / bias_parts(u) / 2 * 2, most = u.channels / 8;
  const int eights = even < kFewest ? kFewest : even;
  return eights < most ? eights : most;
}

struct BiasUpdates {
  static constexpr int kMost = 8;
  BiasUpdate layers[kMost];
  int end[kMost] = {};  // end of each layer's blocks of a client
};

// Four blocks per multiprocessor: with more, a thread has fewer registers, and the compiler does
// one read at a time.
template <typename T>
__global__ void __launch_bounds__(kThreads, 4) bias_kernel(const __grid_constant__ BiasUpdates b) {
  constexpr int kReads = 4;
  extern __shared__ float sums[];  // [part, channel]
  const int client = blockIdx.y, block = blockIdx.x;
  int layer = 0;
  while (block >= b.end[layer]) ++layer;
  const BiasUpdate& u = b.layers[layer];
  const int all_eights = u.channels / 8, eights = bias_eights(u), parts = bias_parts(u);
  const int first = (block - (layer == 0 ? 0 : b.end[layer - 1])) * eights;
  const int rows = u.pixels * u.rows, at_once = kThreads / eights;
  const int own = threadIdx.x % eights, eight = first + own;
  const bool used = eight < all_eights && static_cast<int>(threadIdx.x) < at_once * eights;
  const Eight<T>* dy =
      static_cast<const Eight<T>*>(u.dy) + static_cast<int64_t>(client) * rows * all_eights + eight;
  const int step = parts * all_eights;
  for (int part = threadIdx.x / eights; used && part < parts; part += at_once) {
    float sum[8] = {};
    const Eight<T>* from = dy + part * all_eights;
    int left = (rows - part + parts - 1) / parts;
    // Several reads at the same time: by itself the compiler puts sums between them.
#pragma unroll 1
    for (; left >= kReads; left -= kReads, from += kReads * step) {
      Eight<T> read[kReads];
#pragma unroll
      for (int i = 0; i < kReads; ++i) read[i] = from[i * step];
#pragma unroll
      for (int i = 0; i < kReads; ++i) add_eight(sum, read[i]);
    }
#pragma unroll 1
    for (; left > 0; --left, from += step) add_eight(sum, load_eight<T>(from, 0));
#pragma unroll
    for (int j = 0; j < 8; ++j) sums[(part * eights + own) * 8 + j] = sum[j];
  }
  __syncthreads();
  const ClientSettings s = u.settings[client];
  for (int i = threadIdx.x; i < eights * 8 && first * 8 + i < u.channels; i += kThreads) {
    float gradient = 0.0f;
#pragma unroll 8
    for (int part = 0; part < parts; ++part) gradient += sums[part * eights * 8 + i];
    const int64_t at = client * u.client_size + first * 8 + i;
    float& w = u.weights[at];
    float& v = u.velocity[at];
    if (u.global != nullptr) gradient += s.mu * (w - u.global[at]);
    v = s.momentum * v + (gradient + s.weight_decay * w);
    w -= s.learning_rate * v;
  }
  // All that this kernel reads was written before the preceding kernel began, so it need not wait
  // for that. But the next kernel relies on both: one block waits here, so that this kernel ends
  // last.
  if (block == gridDim.x - 1 && client == gridDim.y - 1) wait_for_kernel_before();
}

}  // namespace

cudaError_t update_biases(Precision precision, int clients, const std::vector<BiasUpdate>& layers,
                          cudaStream_t stream) {
  const int count = static_cast<int>(layers.size());
  for (int first = 0; first < count; first += BiasUpdates::kMost) {
    BiasUpdates b;
    int blocks = 0, bytes = 0;
    for (int i = 0; i < BiasUpdates::kMost && first + i < count; ++i) {
      const BiasUpdate& u = b.layers[i] = layers[first + i];
      const int eights = bias_eights(u);
      b.end[i] = blocks += (u.channels / 8 + eights - 1) / eights;
      bytes = std::max(bytes, static_cast<int>(sizeof(float)) * bias_parts(u) * eights * 8);
    }
    const dim3 grid(blocks, clients);
    const cudaError_t status =
        precision == Precision::kBfloat16
            ? launch_dependent(bias_kernel<bf16>, grid, kThreads, bytes, stream, b)
            : launch_dependent(bias_kernel<float>, grid, kThreads, bytes, stream, b);
    if (status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

}  // namespace fedsmooth
