#include "fedsmooth/engine/cuda/kernels/pairs/batched_product.h"

#include "fedsmooth/engine/cuda/kernels/pairs/hopper_product.h"
#include "fedsmooth/engine/cuda/kernels/pairs/hopper_wide.h"
#include "fedsmooth/engine/cuda/kernels/tensor_cores/matrix_tiles.cuh"
#include "fedsmooth/engine/cuda/kernels/this_gpu.h"
#include "fedsmooth/engine/cuda/kernels/wave/batched_values.cuh"

namespace fedsmooth {
namespace {

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

// The tiles in shared memory of a block that computes kGroup pixels at 64 rows and 64 columns. For
// each piece of the depth it loads all pixels and taps of a chunk at once, so that few blocks read
// the same weight. Two warps compute a pixel, 32 rows each.
template <bool kGradient, int kDepth>
struct ItemTiles {
  static constexpr int kLeftPitch = kDepth + kPad;
  // A tap's weights are [depth, columns]; for a gradient, [columns, depth].
  static constexpr int kRightRows = kGradient ? kColumns : kDepth;
  static constexpr int kRightColumns = kGradient ? kDepth : kColumns;
  static constexpr int kRightPitch = kRightColumns + kPad;
  static constexpr int kSize = kRows * kLeftPitch;  // values of an item, left or right
  static_assert(kSize >= kRightRows * kRightPitch);
};

template <bool kGradient, int kGroup, int kDepth, int kStages>
__global__ void __launch_bounds__(kGroup * 64) multiply_bf16(MapProduct p) {
  using Tiles = ItemTiles<kGradient, kDepth>;
  constexpr int kThreads = kGroup * 64;
  constexpr int kLeftPitch = Tiles::kLeftPitch, kRightPitch = Tiles::kRightPitch;
  extern __shared__ bf16 shared[];
  const DevicePairs& pairs = p.pairs;
  const int client = blockIdx.z, group = blockIdx.y;
  const int column_tiles = (p.columns + kColumns - 1) / kColumns;
  const int row0 = blockIdx.x / column_tiles * kRows;
  const int column0 = blockIdx.x % column_tiles * kColumns;
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const int stage_size = pairs.most_items * Tiles::kSize;
  const int chunk0 = pairs.chunk_first[group];
  const int depth_pieces = (p.depth + kDepth - 1) / kDepth;
  const int pieces = (pairs.chunk_first[group + 1] - chunk0) * depth_pieces;
  const int row_stride = kGradient ? p.depth : p.columns;
  const bf16* left = static_cast<const bf16*>(p.left) +
                     static_cast<int64_t>(client) * p.left_pixels * p.rows * p.depth;
  const bf16* right = static_cast<const bf16*>(p.kernel) + client * p.kernel_client;

  const auto load = [&](int piece) {
    if (piece < pieces) {
      const int chunk = chunk0 + piece / depth_pieces, depth0 = piece % depth_pieces * kDepth;
      const int* items = pairs.items + pairs.item_first[chunk];
      const int lefts = pairs.lefts[chunk];
      const int rights = pairs.item_first[chunk + 1] - pairs.item_first[chunk] - lefts;
      bf16* to_left = shared + piece % kStages * stage_size;
      bf16* to_right = to_left + lefts * Tiles::kSize;
      constexpr int kLeftVectors = kRows * kDepth / 8;
      for (int i = thread; i < lefts * kLeftVectors; i += kThreads) {
        const int item = i / kLeftVectors, row = i % kLeftVectors / (kDepth / 8);
        const int d = i % (kDepth / 8) * 8;
        const bool real = depth0 + d < p.depth;
        const bf16* from =
            left + (static_cast<int64_t>(items[item]) * p.rows + row0 + row) * p.depth;
        copy_async(to_left + item * Tiles::kSize + row * kLeftPitch + d,
                   from + (real ? depth0 + d : 0), real);
      }
      constexpr int kRightVectors = Tiles::kRightRows * Tiles::kRightColumns / 8;
      for (int i = thread; i < rights * kRightVectors; i += kThreads) {
        const int item = i / kRightVectors, r = i % kRightVectors / (Tiles::kRightColumns / 8);
        const int c = i % (Tiles::kRightColumns / 8) * 8;
        const int row = (kGradient ? column0 : depth0) + r;
        const int column = (kGradient ? depth0 : column0) + c;
        const bool real =
            row < (kGradient ? p.columns : p.depth) && column < (kGradient ? p.depth : p.columns);
        const bf16* from = right + static_cast<int64_t>(items[lefts + item]) * p.depth * p.columns;
        copy_async(to_right + item * Tiles::kSize + r * kRightPitch + c,
                   from + (real ? row * row_stride + column : 0), real);
      }
    }
    commit_copies();
  };

  const int own = warp / 2, warp_row = warp % 2 * 32;  // the warp's result in the group, its rows
  float sums[2][8][4] = {};
#pragma unroll
  for (int piece = 0; piece < kStages - 1; ++piece) load(piece);
  for (int piece = 0; piece < pieces; ++piece) {
    wait_for_copies<kStages - 2>();
    __syncthreads();
    load(piece + kStages - 1);
    const bf16* items = shared + piece % kStages * stage_size;
    const int* first = pairs.place_first + (chunk0 + piece / depth_pieces) * kGroup + own;
    for (int i = first[0]; i < first[1]; ++i) {
      const int2 place = pairs.places[i];
      const uint32_t a = shared_address(items + place.x * Tiles::kSize +
                                        (warp_row + lane % 16) * kLeftPitch + lane / 16 * 8);
      const bf16* tap = items + place.y * Tiles::kSize;
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
  if (group * kGroup + own >= pairs.results) return;
  const int result = pairs.order[group * kGroup + own];
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

// Computes multiply_maps() in float32, in plain loops. Each block computes one pixel, each thread
// 4x4 values.
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

// Depth of a piece and number of pieces in shared memory: the fastest of those tried on an H200.
constexpr int depth_of(bool gradient, int group) { return gradient && group == 4 ? 32 : 16; }
constexpr int stages_of(bool gradient, int group) { return !gradient && group == 4 ? 3 : 2; }

constexpr int item_bytes(bool gradient, int group) {
  return kRows * (depth_of(gradient, group) + kPad) * static_cast<int>(sizeof(bf16));
}

template <bool kGradient, int kGroup>
cudaError_t launch_bf16(const MapProduct& p, cudaStream_t stream) {
  constexpr int kDepth = depth_of(kGradient, kGroup), kStages = stages_of(kGradient, kGroup);
  const auto kernel = multiply_bf16<kGradient, kGroup, kDepth, kStages>;
  // Layers with different needs share this kernel, so it is allowed the maximum.
  const cudaError_t status = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_memory_limit());
  if (status != cudaSuccess) return status;
  const dim3 grid(p.rows / kRows * ((p.columns + kColumns - 1) / kColumns), p.pairs.groups,
                  p.clients);
  const int bytes = kStages * p.pairs.most_items * item_bytes(kGradient, kGroup);
  kernel<<<grid, kGroup * 64, bytes, stream>>>(p);
  return cudaGetLastError();
}

template <bool kGradient>
cudaError_t launch_group(const MapProduct& p, cudaStream_t stream) {
  switch (p.pairs.tiling.results) {
    case 8:
      return launch_bf16<kGradient, 8>(p, stream);
    case 4:
      return launch_bf16<kGradient, 4>(p, stream);
    default:
      return launch_bf16<kGradient, 1>(p, stream);
  }
}

}  // namespace

Tiling portable_tiling(Side side, int results) {
  const bool gradient = side == Side::kMapGradient;
  const int group = results > 4 ? 8 : results > 1 ? 4 : 1;
  const int depth = depth_of(gradient, group), stages = stages_of(gradient, group);
  return {false, group, depth, stages,
          shared_memory_limit() / stages / item_bytes(gradient, group)};
}

Tiling choose_tiling(Side side, int results, int pairs) {
  return has_hopper_kernels() ? hopper_tiling(side, results, pairs)
                              : portable_tiling(side, results);
}

cudaError_t multiply_maps(Precision precision, const MapProduct& p, cudaStream_t stream) {
  if (precision == Precision::kBfloat16) {
    if (p.pairs.tiling.hopper) return multiply_maps_hopper(p, stream);
    return p.gradient ? launch_group<true>(p, stream) : launch_group<false>(p, stream);
  }
  const dim3 grid(p.rows / kRows * ((p.columns + kColumns - 1) / kColumns), p.pairs.results,
                  p.clients);
  multiply_float<<<grid, 256, 0, stream>>>(p);
  return cudaGetLastError();
}

cudaError_t multiply_many_rows(const MapProduct& p, cudaStream_t stream) {
  if (p.pairs.tiling.hopper && is_wide(p)) return multiply_maps_wide(p, stream);
  return cudaErrorNotSupported;
}

}  // namespace fedsmooth
