#include "fedsmooth/engine/cuda/kernels/pairs/batched_weights.h"

#include "fedsmooth/base/wide_integer.h"
#include "fedsmooth/engine/cuda/kernels/pairs/hopper_product.h"
#include "fedsmooth/engine/cuda/kernels/pairs/sgd_step.cuh"
#include "fedsmooth/engine/cuda/kernels/tensor_cores/matrix_tiles.cuh"

namespace fedsmooth {
namespace {

// Applies a step with a tile of gradients [64, 64], `pitch` floats per row.
template <typename T, int kBlock>
__device__ void step_tile(const WeightUpdate& u, int client, int tap, int channel0, int column0,
                          const float* sums, int pitch) {
  const ClientSettings s = u.settings[client];
#pragma unroll 4
  for (int i = threadIdx.x; i < kRows * kColumns / 4; i += kBlock) {
    const int r = i / (kColumns / 4), c = i % (kColumns / 4) * 4;
    if (channel0 + r >= u.in_channels || column0 + c >= u.out_channels) continue;
    const int64_t local =
        (static_cast<int64_t>(tap) * u.in_channels + channel0 + r) * u.out_channels + column0 + c;
    const int64_t client_at = client * u.client_size;
    const Four gradient = *reinterpret_cast<const Four*>(sums + r * pitch + c);
    step_four<T>(u, s, client_at, local, gradient, load_four(u.weights + client_at + local),
                 load_four(u.velocity + client_at + local));
  }
}

// Each block updates 64 x 64 weights of one tap. The sums are moved through shared memory, so that
// weights are read and written in whole cache lines.
__global__ void __launch_bounds__(128) update_bf16(WeightUpdate u) {
  constexpr int kPitch = 64 + kPad, kTile = 64 * kPitch, kSumPitch = kColumns + 4;
  __shared__ alignas(16) bf16 shared[4 * kTile];
  static_assert(sizeof(shared) >= kRows * kSumPitch * sizeof(float));
  const int client = blockIdx.z, tap = blockIdx.y;
  const int column_tiles = (u.out_channels + kColumns - 1) / kColumns;
  const int channel0 = blockIdx.x / column_tiles * kRows;
  const int column0 = blockIdx.x % column_tiles * kColumns;
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const int begin = u.pairs.first[tap], blocks = u.rows / 64;
  const int steps = (u.pairs.first[tap + 1] - begin) * blocks;
  const bf16* x = static_cast<const bf16*>(u.x) +
                  static_cast<int64_t>(client) * u.in_pixels * u.rows * u.in_channels;
  const bf16* dy = static_cast<const bf16*>(u.dy) +
                   static_cast<int64_t>(client) * u.out_pixels * u.rows * u.out_channels;

  const auto load = [&](int step) {
    if (step < steps) {
      bf16* to_x = shared + step % 2 * 2 * kTile;
      bf16* to_dy = to_x + kTile;
      const int2 pair = u.pairs.pairs[begin + step / blocks];
      const int64_t row0 = step % blocks * 64;
#pragma unroll
      for (int i = thread; i < 64 * 8; i += 128) {
        const int row = i / 8, c = i % 8 * 8;
        const bool in_real = channel0 + c < u.in_channels, out_real = column0 + c < u.out_channels;
        copy_async(to_x + row * kPitch + c,
                   x + (static_cast<int64_t>(pair.x) * u.rows + row0 + row) * u.in_channels +
                       (in_real ? channel0 + c : 0),
                   in_real);
        copy_async(to_dy + row * kPitch + c,
                   dy + (static_cast<int64_t>(pair.y) * u.rows + row0 + row) * u.out_channels +
                       (out_real ? column0 + c : 0),
                   out_real);
      }
    }
    commit_copies();
  };

  const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
  float sums[2][4][4] = {};
  load(0);
  for (int step = 0; step < steps; ++step) {
    load(step + 1);
    wait_for_copies<1>();
    __syncthreads();
    const bf16* from_x = shared + step % 2 * 2 * kTile;
    const bf16* from_dy = from_x + kTile;
#pragma unroll
    for (int row = 0; row < 64; row += 16) {
      uint32_t a[2][4], b[2][4];
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        load_matrices<true>(
            a[m], shared_address(from_x + (row + lane / 16 * 8 + lane % 8) * kPitch + warp_row +
                                 16 * m + lane / 8 % 2 * 8));
        load_matrices<true>(b[m], shared_address(from_dy + (row + lane % 16) * kPitch +
                                                 warp_column + 16 * m + lane / 16 * 8));
      }
#pragma unroll
      for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int n = 0; n < 2; ++n) {
          mma_16816(sums[m][2 * n], a[m], b[n][0], b[n][1]);
          mma_16816(sums[m][2 * n + 1], a[m], b[n][2], b[n][3]);
        }
      }
    }
    __syncthreads();
  }
  wait_for_copies<0>();
  float* tile = reinterpret_cast<float*>(shared);
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = warp_row + 16 * m + 8 * half + lane / 4;
        const int column = warp_column + 8 * n + lane % 4 * 2;
        *reinterpret_cast<float2*>(tile + row * kSumPitch + column) =
            make_float2(sums[m][n][2 * half], sums[m][n][2 * half + 1]);
      }
    }
  }
  __syncthreads();
  step_tile<bf16, 128>(u, client, tap, channel0, column0, tile, kSumPitch);
}

__global__ void __launch_bounds__(256) update_float(WeightUpdate u) {
  constexpr int kDepth = 16;
  __shared__ float x[kDepth][kRows], dy[kDepth][kColumns];
  __shared__ alignas(16) float tile[kRows * kColumns];
  const int client = blockIdx.z, tap = blockIdx.y, thread = threadIdx.x;
  const int column_tiles = (u.out_channels + kColumns - 1) / kColumns;
  const int channel0 = blockIdx.x / column_tiles * kRows;
  const int column0 = blockIdx.x % column_tiles * kColumns;
  const float* xs = static_cast<const float*>(u.x) +
                    static_cast<int64_t>(client) * u.in_pixels * u.rows * u.in_channels;
  const float* dys = static_cast<const float*>(u.dy) +
                     static_cast<int64_t>(client) * u.out_pixels * u.rows * u.out_channels;
  const int r = thread / 16 * 4, c = thread % 16 * 4;
  float sums[4][4] = {};
  for (int i = u.pairs.first[tap]; i < u.pairs.first[tap + 1]; ++i) {
    const int2 pair = u.pairs.pairs[i];
    for (int row0 = 0; row0 < u.rows; row0 += kDepth) {
      __syncthreads();
      for (int j = thread; j < kDepth * 64; j += 256) {
        const int64_t row = row0 + j / 64;
        const int channel = channel0 + j % 64, column = column0 + j % 64;
        x[j / 64][j % 64] =
            channel < u.in_channels ? xs[(pair.x * u.rows + row) * u.in_channels + channel] : 0.0f;
        dy[j / 64][j % 64] =
            column < u.out_channels ? dys[(pair.y * u.rows + row) * u.out_channels + column] : 0.0f;
      }
      __syncthreads();
      for (int d = 0; d < kDepth; ++d) {
#pragma unroll
        for (int m = 0; m < 4; ++m) {
#pragma unroll
          for (int n = 0; n < 4; ++n) sums[m][n] = fmaf(x[d][r + m], dy[d][c + n], sums[m][n]);
        }
      }
    }
  }
  for (int m = 0; m < 4; ++m) {
    for (int n = 0; n < 4; ++n) tile[(r + m) * kColumns + c + n] = sums[m][n];
  }
  __syncthreads();
  step_tile<float, 256>(u, client, tap, channel0, column0, tile, kColumns);
}

__global__ void scatter_kernel(const float* values, const int* positions, int64_t count,
                               float* vector) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) vector[positions[i]] = values[i];
}

__global__ void spread_kernel(const float* vector, int64_t size, float* weights, float* velocity,
                              bf16* working, float* global) {
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * 4;
  if (i >= size) return;
  const int64_t at = blockIdx.y * size + i;
  const Four values = *reinterpret_cast<const Four*>(vector + i);
  store_four(weights + at, values);
  store_four(velocity + at, {});
  if (working != nullptr) store_four(working + at, values);
  if (global != nullptr) store_four(global + at, values);
}

__global__ void usable_kernel(WeightCheck s) {
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * 4;
  if (i >= s.size) return;
  const Four w = load_four(s.weights + blockIdx.y * s.size + i);
  const float largest = i < s.trained ? s.largest : s.largest_statistic;
  for (const float value : w.value) {
    // The comparison fails for NaN. Several threads may write, but all write 0.
    if (!(fabsf(value) <= largest)) s.usable[blockIdx.y] = 0;
  }
}

__global__ void sum_kernel(WeightSum s) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= s.trained) return;
  long long sum = 0;
  for (int k = 0; k < s.clients; ++k) {
    if (s.usable[k]) {
      sum += __double2ll_rn(s.scale[k] * static_cast<double>(s.weights[k * s.size + i]));
    }
  }
  s.sums[i] = sum;
}

__global__ void gather_kernel(WeightSum s) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < s.count) s.out[i] = s.sums[s.positions[i]];
}

__global__ void sum_statistics_kernel(WeightSum s) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= s.statistics) return;
  const int position = s.positions[s.count + i];
  long long words[kWideWords] = {};
  for (int k = 0; k < s.clients; ++k) {
    if (!s.usable[k]) continue;
    add_wide(rint(s.scale[k] * static_cast<double>(s.weights[k * s.size + position])), words);
  }
  for (int j = 0; j < kWideWords; ++j) s.out[s.count + kWideWords * i + j] = words[j];
}

__global__ void take_kernel(const float* vector, const int* positions, int64_t count,
                            float* values) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) values[i] = vector[positions[i]];
}

}  // namespace

cudaError_t update_weights(Precision precision, const WeightUpdate& u, cudaStream_t stream) {
  if (precision == Precision::kBfloat16 && u.pairs.tiling.hopper) {
    return update_kernel_hopper(u, stream);
  }
  const dim3 grid(
      (u.in_channels + kRows - 1) / kRows * ((u.out_channels + kColumns - 1) / kColumns),
      u.pairs.results, u.clients);
  if (precision == Precision::kBfloat16) {
    update_bf16<<<grid, 128, 0, stream>>>(u);
  } else {
    update_float<<<grid, 256, 0, stream>>>(u);
  }
  return cudaGetLastError();
}

cudaError_t place_values(const float* values, const int* positions, int64_t count, float* vector,
                         cudaStream_t stream) {
  scatter_kernel<<<blocks_for(count, 1), kThreads, 0, stream>>>(values, positions, count, vector);
  return cudaGetLastError();
}

cudaError_t spread_weights(const WeightSpread& w, cudaStream_t stream) {
  cudaError_t status = cudaMemsetAsync(w.vector, 0, sizeof(float) * w.size, stream);
  if (status == cudaSuccess) {
    status = place_values(w.values, w.positions, w.count, w.vector, stream);
  }
  if (status != cudaSuccess) return status;
  spread_kernel<<<blocks_for(w.size / 4, w.clients), kThreads, 0, stream>>>(
      w.vector, w.size, w.weights, w.velocity, static_cast<bf16*>(w.working), w.global);
  return cudaGetLastError();
}

cudaError_t check_weights(const WeightCheck& check, cudaStream_t stream) {
  usable_kernel<<<blocks_for(check.size / 4, check.clients), kThreads, 0, stream>>>(check);
  return cudaGetLastError();
}

cudaError_t gather_values(const float* vector, const int* positions, int64_t count, float* values,
                          cudaStream_t stream) {
  take_kernel<<<blocks_for(count, 1), kThreads, 0, stream>>>(vector, positions, count, values);
  return cudaGetLastError();
}

cudaError_t sum_weights(const WeightSum& sum, cudaStream_t stream) {
  sum_kernel<<<blocks_for(sum.trained, 1), kThreads, 0, stream>>>(sum);
  gather_kernel<<<blocks_for(sum.count, 1), kThreads, 0, stream>>>(sum);
  if (sum.statistics > 0) {
    sum_statistics_kernel<<<blocks_for(sum.statistics, 1), kThreads, 0, stream>>>(sum);
  }
  return cudaGetLastError();
}

}  // namespace fedsmooth
