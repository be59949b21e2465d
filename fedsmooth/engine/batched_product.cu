#include <cuda_bf16.h>

#include "fedsmooth/engine/batched_product.h"

namespace fedsmooth {
namespace {

using bf16 = __nv_bfloat16;

constexpr int kRows = 64, kColumns = 64;  // of a tile
constexpr int kPad = 8;                   // values between rows in shared memory: no bank conflicts

__device__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Sixteen bytes to shared memory, or zeros.
__device__ void copy_async(void* to, const void* from, bool real) {
  const int bytes = real ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(to)),
               "l"(from), "r"(bytes));
}
__device__ void commit_copies() { asm volatile("cp.async.commit_group;\n"); }
template <int kLeft>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kLeft));
}

// Four 8x8 matrices, each lane giving the address of one row, for mma_16816().
template <bool kTransposed>
__device__ void load_matrices(uint32_t (&out)[4], uint32_t address) {
  if constexpr (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(address));
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(address));
  }
}

__device__ void mma_16816(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%0,%1,%2,%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ float to_float(bf16 x) { return __bfloat162float(x); }
__device__ float to_float(float x) { return x; }

// Finishes two neighbouring values of a map, at (pixel, row, column).
template <typename T>
__device__ void finish_pair(const MapProduct& p, int client, int pixel, int row, int column,
                            float a, float b) {
  const int64_t at =
      ((static_cast<int64_t>(client) * p.pairs.results + pixel) * p.rows + row) * p.columns +
      column;
  if (p.bias != nullptr) {
    a += p.bias[client * p.bias_client + column];
    b += p.bias[client * p.bias_client + column + 1];
  }
  if (p.relu) {
    a = a < 0.0f ? 0.0f : a;
    b = b < 0.0f ? 0.0f : b;
  }
  if (p.mask != nullptr) {
    const T* mask = static_cast<const T*>(p.mask) + at;
    a = to_float(mask[0]) > 0.0f ? a : 0.0f;
    b = to_float(mask[1]) > 0.0f ? b : 0.0f;
  }
  if (p.out_float != nullptr) {
    p.out_float[at] = a;
    p.out_float[at + 1] = b;
  } else if constexpr (sizeof(T) == 2) {
    *reinterpret_cast<__nv_bfloat162*>(static_cast<T*>(p.out) + at) = __floats2bfloat162_rn(a, b);
  } else {
    static_cast<T*>(p.out)[at] = a;
    static_cast<T*>(p.out)[at + 1] = b;
  }
}

// A block computes kGroup pixels at 64 rows and 64 columns. For each piece of the depth it takes in
// all pixels and taps of the group at once, so that a weight is read by one block alone. Two warps
// work on a pixel, 32 rows each.
template <bool kGradient, int kGroup, int kDepth, int kStages>
__global__ void __launch_bounds__(kGroup * 64) multiply_bf16(MapProduct p) {
  constexpr int kThreads = kGroup * 64;
  constexpr int kLeftPitch = kDepth + kPad, kLeftTile = kRows * kLeftPitch;
  // A tap's weights lie as [depth, columns], for a gradient as [columns, depth].
  constexpr int kTileRows = kGradient ? kColumns : kDepth;
  constexpr int kTileColumns = kGradient ? kDepth : kColumns;
  constexpr int kRightPitch = kTileColumns + kPad, kRightTile = kTileRows * kRightPitch;
  extern __shared__ bf16 shared[];
  const DevicePairs& pairs = p.pairs;
  const int client = blockIdx.z, group = blockIdx.y;
  const int column_tiles = (p.columns + kColumns - 1) / kColumns;
  const int row0 = blockIdx.x / column_tiles * kRows;
  const int column0 = blockIdx.x % column_tiles * kColumns;
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const int stage_size = pairs.most_left * kLeftTile + pairs.most_right * kRightTile;
  const int* lefts = pairs.left + pairs.left_first[group];
  const int* rights = pairs.right + pairs.right_first[group];
  const int left_count = pairs.left_first[group + 1] - pairs.left_first[group];
  const int right_count = pairs.right_first[group + 1] - pairs.right_first[group];
  const int pieces = (p.depth + kDepth - 1) / kDepth;
  const int row_stride = kGradient ? p.depth : p.columns;
  const bf16* left = static_cast<const bf16*>(p.left) +
                     static_cast<int64_t>(client) * p.left_pixels * p.rows * p.depth;
  const bf16* right = static_cast<const bf16*>(p.kernel) + client * p.kernel_client;

  const auto load = [&](int piece) {
    if (piece < pieces) {
      bf16* to_left = shared + piece % kStages * stage_size;
      bf16* to_right = to_left + pairs.most_left * kLeftTile;
      const int depth0 = piece * kDepth;
      constexpr int kLeftVectors = kRows * kDepth / 8;
      for (int i = thread; i < left_count * kLeftVectors; i += kThreads) {
        const int item = i / kLeftVectors, row = i % kLeftVectors / (kDepth / 8);
        const int d = i % (kDepth / 8) * 8;
        const bool real = depth0 + d < p.depth;
        const bf16* from =
            left + (static_cast<int64_t>(lefts[item]) * p.rows + row0 + row) * p.depth;
        copy_async(to_left + item * kLeftTile + row * kLeftPitch + d,
                   from + (real ? depth0 + d : 0), real);
      }
      constexpr int kRightVectors = kTileRows * kTileColumns / 8;
      for (int i = thread; i < right_count * kRightVectors; i += kThreads) {
        const int item = i / kRightVectors, r = i % kRightVectors / (kTileColumns / 8);
        const int c = i % (kTileColumns / 8) * 8;
        const int row = (kGradient ? column0 : depth0) + r;
        const int column = (kGradient ? depth0 : column0) + c;
        const bool real =
            row < (kGradient ? p.columns : p.depth) && column < (kGradient ? p.depth : p.columns);
        const bf16* from = right + static_cast<int64_t>(rights[item]) * p.depth * p.columns;
        copy_async(to_right + item * kRightTile + r * kRightPitch + c,
                   from + (real ? row * row_stride + column : 0), real);
      }
    }
    commit_copies();
  };

  const int result = group * kGroup + warp / 2, warp_row = warp % 2 * 32;
  const bool works = result < pairs.results;
  const int first = works ? pairs.first[result] : 0, last = works ? pairs.first[result + 1] : 0;
  float sums[2][8][4] = {};
#pragma unroll
  for (int piece = 0; piece < kStages - 1; ++piece) load(piece);
  for (int piece = 0; piece < pieces; ++piece) {
    wait_for_copies<kStages - 2>();
    __syncthreads();
    load(piece + kStages - 1);
    const bf16* from_left = shared + piece % kStages * stage_size;
    const bf16* from_right = from_left + pairs.most_left * kLeftTile;
    for (int i = first; i < last; ++i) {
      const int2 pair = pairs.local[i];
      const uint32_t a = shared_address(from_left + pair.x * kLeftTile +
                                        (warp_row + lane % 16) * kLeftPitch + lane / 16 * 8);
      const bf16* tap = from_right + pair.y * kRightTile;
      const uint32_t b = shared_address(kGradient ? tap + (lane / 16 * 8 + lane % 8) * kRightPitch +
                                                        lane / 8 % 2 * 8
                                                  : tap + lane % 16 * kRightPitch + lane / 16 * 8);
#pragma unroll
      for (int d = 0; d < kDepth; d += 16) {
        uint32_t x[2][4], w[4][4];
#pragma unroll
        for (int m = 0; m < 2; ++m) load_matrices<false>(x[m], a + (16 * m * kLeftPitch + d) * 2);
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          load_matrices<!kGradient>(
              w[n], b + (kGradient ? 16 * n * kRightPitch + d : d * kRightPitch + 16 * n) * 2);
        }
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 4; ++n) {
            mma_16816(sums[m][2 * n], x[m], w[n][0], w[n][1]);
            mma_16816(sums[m][2 * n + 1], x[m], w[n][2], w[n][3]);
          }
        }
      }
    }
  }
  if (!works) return;
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = row0 + warp_row + 16 * m + 8 * half + lane / 4;
        const int column = column0 + 8 * n + lane % 4 * 2;
        if (column < p.columns) {
          finish_pair<bf16>(p, client, result, row, column, sums[m][n][2 * half],
                            sums[m][n][2 * half + 1]);
        }
      }
    }
  }
}

// The same in float32, plainly: a block computes one pixel, a thread 4x4 values.
__global__ void __launch_bounds__(256) multiply_float(MapProduct p) {
  constexpr int kDepth = 16;
  __shared__ float x[kDepth][kRows + 1], w[kDepth][kColumns + 1];
  const int client = blockIdx.z, result = blockIdx.y, thread = threadIdx.x;
  const int column_tiles = (p.columns + kColumns - 1) / kColumns;
  const int row0 = blockIdx.x / column_tiles * kRows;
  const int column0 = blockIdx.x % column_tiles * kColumns;
  const float* left = static_cast<const float*>(p.left) +
                      static_cast<int64_t>(client) * p.left_pixels * p.rows * p.depth;
  const float* right = static_cast<const float*>(p.kernel) + client * p.kernel_client;
  const int r = thread / 16 * 4, c = thread % 16 * 4;
  float sums[4][4] = {};
  for (int i = p.pairs.first[result]; i < p.pairs.first[result + 1]; ++i) {
    const int2 pair = p.pairs.pairs[i];
    const float* a = left + (static_cast<int64_t>(pair.x) * p.rows + row0) * p.depth;
    const float* b = right + static_cast<int64_t>(pair.y) * p.depth * p.columns;
    for (int depth0 = 0; depth0 < p.depth; depth0 += kDepth) {
      __syncthreads();
      for (int j = thread; j < kDepth * kRows; j += 256) {
        const int d = j % kDepth, row = j / kDepth;
        x[d][row] = a[row * p.depth + depth0 + d];
        const int column = column0 + row;
        const int64_t at = p.gradient ? static_cast<int64_t>(column) * p.depth + depth0 + d
                                      : static_cast<int64_t>(depth0 + d) * p.columns + column;
        w[d][row] = column < p.columns ? b[at] : 0.0f;
      }
      __syncthreads();
      for (int d = 0; d < kDepth; ++d) {
#pragma unroll
        for (int m = 0; m < 4; ++m) {
#pragma unroll
          for (int n = 0; n < 4; ++n) sums[m][n] = fmaf(x[d][r + m], w[d][c + n], sums[m][n]);
        }
      }
    }
  }
  for (int m = 0; m < 4; ++m) {
    for (int n = 0; n < 4; n += 2) {
      if (column0 + c + n < p.columns) {
        finish_pair<float>(p, client, result, row0 + r + m, column0 + c + n, sums[m][n],
                           sums[m][n + 1]);
      }
    }
  }
}

// SGD as in PyTorch, on four weights at once.
template <typename T>
__device__ void step_four(const WeightUpdate& u, const ClientSettings& s, int64_t at, int64_t local,
                          const float (&gradient)[4]) {
  float w[4], v[4];
  *reinterpret_cast<float4*>(w) = *reinterpret_cast<const float4*>(u.weights + at);
  *reinterpret_cast<float4*>(v) = *reinterpret_cast<const float4*>(u.velocity + at);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float g = u.real == nullptr || u.real[local + i] ? gradient[i] : 0.0f;
    v[i] = s.momentum * v[i] + (g + s.weight_decay * w[i]);
    w[i] -= s.learning_rate * v[i];
  }
  *reinterpret_cast<float4*>(u.weights + at) = *reinterpret_cast<const float4*>(w);
  *reinterpret_cast<float4*>(u.velocity + at) = *reinterpret_cast<const float4*>(v);
  if constexpr (sizeof(T) == 2) {
    const __nv_bfloat162 low = __floats2bfloat162_rn(w[0], w[1]);
    const __nv_bfloat162 high = __floats2bfloat162_rn(w[2], w[3]);
    *reinterpret_cast<uint2*>(static_cast<T*>(u.working) + at) =
        make_uint2(reinterpret_cast<const uint32_t&>(low), reinterpret_cast<const uint32_t&>(high));
  }
}

// A finished tile of sums [64, 64], `pitch` floats a row, as a step.
template <typename T, int kThreads>
__device__ void step_tile(const WeightUpdate& u, int client, int tap, int channel0, int column0,
                          const float* sums, int pitch) {
  const ClientSettings s = u.settings[client];
#pragma unroll 4
  for (int i = threadIdx.x; i < kRows * kColumns / 4; i += kThreads) {
    const int r = i / (kColumns / 4), c = i % (kColumns / 4) * 4;
    if (channel0 + r >= u.in_channels || column0 + c >= u.out_channels) continue;
    const int64_t local =
        (static_cast<int64_t>(tap) * u.in_channels + channel0 + r) * u.out_channels + column0 + c;
    float gradient[4];
    *reinterpret_cast<float4*>(gradient) = *reinterpret_cast<const float4*>(sums + r * pitch + c);
    step_four<T>(u, s, client * u.client_size + local, local, gradient);
  }
}

// A block computes 64 x 64 weights of one tap. The sums go through shared memory, so that weights
// are read and written in whole lines.
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

// Depth of a piece and pieces in flight: the fastest of those tried on an H200.
constexpr int depth_of(bool gradient, int per_group) {
  return gradient && per_group == 4 ? 32 : 16;
}
constexpr int stages_of(bool gradient, int per_group) {
  return !gradient && per_group == 4 ? 3 : 2;
}

template <bool kGradient, int kGroup>
cudaError_t launch_bf16(const MapProduct& p, cudaStream_t stream) {
  constexpr int kDepth = depth_of(kGradient, kGroup), kStages = stages_of(kGradient, kGroup);
  const auto kernel = multiply_bf16<kGradient, kGroup, kDepth, kStages>;
  const int bytes = shared_memory(kGradient, kGroup, p.pairs.most_left, p.pairs.most_right);
  // Several layers share a kernel: allow as much as any of them may ask for.
  int device = 0, most = 0;
  cudaError_t status = cudaGetDevice(&device);
  if (status != cudaSuccess) return status;
  status = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (status != cudaSuccess) return status;
  status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most);
  if (status != cudaSuccess) return status;
  const dim3 grid(p.rows / kRows * ((p.columns + kColumns - 1) / kColumns), p.pairs.groups,
                  p.clients);
  kernel<<<grid, kGroup * 64, bytes, stream>>>(p);
  return cudaGetLastError();
}

template <bool kGradient>
cudaError_t launch_group(const MapProduct& p, cudaStream_t stream) {
  switch (p.pairs.per_group) {
    case 8:
      return launch_bf16<kGradient, 8>(p, stream);
    case 4:
      return launch_bf16<kGradient, 4>(p, stream);
    case 2:
      return launch_bf16<kGradient, 2>(p, stream);
    default:
      return launch_bf16<kGradient, 1>(p, stream);
  }
}

}  // namespace

int shared_memory(bool gradient, int per_group, int most_left, int most_right) {
  const int depth = depth_of(gradient, per_group), stages = stages_of(gradient, per_group);
  const int left = kRows * (depth + kPad);
  const int right = gradient ? kColumns * (depth + kPad) : depth * (kColumns + kPad);
  return stages * (most_left * left + most_right * right) * static_cast<int>(sizeof(bf16));
}

cudaError_t multiply_maps(Precision precision, const MapProduct& p, cudaStream_t stream) {
  if (precision == Precision::kBfloat16) {
    return p.gradient ? launch_group<true>(p, stream) : launch_group<false>(p, stream);
  }
  const dim3 grid(p.rows / kRows * ((p.columns + kColumns - 1) / kColumns), p.pairs.results,
                  p.clients);
  multiply_float<<<grid, 256, 0, stream>>>(p);
  return cudaGetLastError();
}

cudaError_t update_kernel(Precision precision, const WeightUpdate& u, cudaStream_t stream) {
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

}  // namespace fedsmooth
