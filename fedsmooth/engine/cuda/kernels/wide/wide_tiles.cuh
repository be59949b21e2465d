// Tiles in shared memory for matrix products in bfloat16, 64 values deep, and their multiplication
// by warps (mma.sync), on every GPU. hopper_warpgroups.cuh multiplies them by warpgroups (wgmma).
// Both read the same tiles and give each thread the same sums, so the rest of the code is shared.
//
// A tile has rows of 128 bytes. The eight cells of 16 bytes of a row are permuted by the row's
// number (swizzled), as the tensor cores of Hopper require: cells that are read together are then
// in different banks.
#pragma once

#include "fedsmooth/engine/cuda/kernels/tensor_cores/matrix_tiles.cuh"

namespace fedsmooth::wide {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kDepth = 64;                  // products that a stage adds to each sum
constexpr int kRowBytes = 128;              // bytes of a row of a tile
constexpr int kTileBytes = 64 * kRowBytes;  // bytes of a tile of 64 rows
constexpr int kAlignment = 1024;            // of tiles: the permutation repeats after eight rows

/// Returns the offset, in bytes, of a row's cell in a tile.
inline __device__ int cell_at(int row, int cell) {
  return row * kRowBytes + ((cell ^ (row & 7)) * 16);
}

/// Starts copying a cell. If `real` is false it writes zeros and does not read `from`. With kCached
/// the copy goes through the multiprocessor's cache, for values that this block or another one on
/// it reads again soon.
template <bool kCached>
inline __device__ void copy_cell(uint32_t to, const void* from, bool real) {
  const int bytes = real ? 16 : 0;
  if constexpr (kCached) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from),
                 "r"(bytes));
  } else {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from),
                 "r"(bytes));
  }
}

/// Returns the block's dynamic shared memory, aligned for tiles. Launches ask for kAlignment bytes
/// more than they use.
inline __device__ uint8_t* aligned_tiles() {
  extern __shared__ uint8_t memory[];
  const uint32_t address = shared_address(memory);
  return memory + ((address + kAlignment - 1) / kAlignment * kAlignment - address);
}

/// A thread's share of the sums for 64 rows of its warpgroup and 64 kTiles columns: lane l of warp
/// w of the warpgroup has rows 16 w + l / 4 (+ 8) and columns 64 t + 8 n + l % 4 * 2 (+ 1) in
/// v[t][4 n] to v[t][4 n + 3].
template <int kTiles>
struct Sums {
  float v[kTiles][32] = {};
};

/// Calls each(row, column, low, high) for the thread's sums of columns `column` and column + 1.
/// Rows are counted from the first of the warpgroup.
template <int kTiles, class Each>
inline __device__ void for_each_sum(const Sums<kTiles>& sums, const Each& each) {
  const int row = threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
#pragma unroll
  for (int t = 0; t < kTiles; ++t) {
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      const int column = 64 * t + 8 * n + threadIdx.x % 4 * 2;
      each(row, column, sums.v[t][4 * n], sums.v[t][4 * n + 1]);
      each(row + 8, column, sums.v[t][4 * n + 2], sums.v[t][4 * n + 3]);
    }
  }
}

/// Products by warps. multiply() and multiply_across() add the products of one stage to `sums`,
/// which are complete when they return.
struct ByWarps {
  static __device__ void before_barrier() {}
  static __device__ void finish() {}

  /// Adds A B', for tiles at shared addresses `a` and `b`: A is [64, depth] and has the rows of the
  /// warpgroup, B is [64 kTiles, depth].
  template <int kTiles>
  static __device__ void multiply(Sums<kTiles>& sums, uint32_t a, uint32_t b) {
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16 + lane % 16;
    const int right = lane / 16 * 8 + lane % 8;
#pragma unroll
    for (int d = 0; d < kDepth / 16; ++d) {
      uint32_t left[4];
      load_matrices<false>(left, a + cell_at(row, 2 * d + lane / 16));
#pragma unroll
      for (int n = 0; n < 4 * kTiles; ++n) {
        uint32_t pair[4];
        load_matrices<false>(pair, b + cell_at(16 * n + right, 2 * d + lane / 8 % 2));
        add(sums, n, left, pair);
      }
    }
  }

  /// Adds A' B, for tiles at shared addresses `a` and `b`: A is [depth, 64], whose columns are the
  /// rows of the warpgroup, and B is kTiles tiles [depth, 64].
  template <int kTiles>
  static __device__ void multiply_across(Sums<kTiles>& sums, uint32_t a, uint32_t b) {
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 2;  // in cells
#pragma unroll
    for (int d = 0; d < kDepth; d += 16) {
      uint32_t left[4];
      load_matrices<true>(left, a + cell_at(d + lane / 16 * 8 + lane % 8, row + lane / 8 % 2));
#pragma unroll
      for (int n = 0; n < 4 * kTiles; ++n) {
        uint32_t pair[4];
        load_matrices<true>(pair,
                            b + n / 4 * kTileBytes + cell_at(d + lane % 16, n % 4 * 2 + lane / 16));
        add(sums, n, left, pair);
      }
    }
  }

 private:
  // Adds the products for columns 16 n to 16 n + 15.
  template <int kTiles>
  static __device__ void add(Sums<kTiles>& sums, int n, const uint32_t (&left)[4],
                             const uint32_t (&pair)[4]) {
    float* at = sums.v[n / 4] + n % 4 * 8;
    mma_16816(reinterpret_cast<float(&)[4]>(at[0]), left, pair[0], pair[1]);
    mma_16816(reinterpret_cast<float(&)[4]>(at[4]), left, pair[2], pair[3]);
  }
};

}  // namespace fedsmooth::wide
