// The transition to the next stage of a residual network: a 3x3 convolution and a 1x1 shortcut,
// both with stride 2 and twice the channels.
#pragma once

#include "fedsmooth/engine/cuda/kernels/stages/residual_strips.cuh"

namespace fedsmooth::residual {

/// Writes a tile of 16 pixels x 16 channels to a map in device memory. The stores of a warp are
/// contiguous.
template <int kArea>
__device__ void store_tile(uint32_t* map, int block, int tile, const Fragment& f) {
  const int lane = threadIdx.x % 32;
  uint32_t* to = map + (block * 2 * kArea + tile * 16) * 4 + lane;
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    to[n * kArea * 4] = f.v[2 * n];
    to[n * kArea * 4 + 32] = f.v[2 * n + 1];
  }
}

/// Two neighbouring tiles of 16 output pixels. Two tiles give twice the independent products of
/// one.
template <class S>
struct TilePair {
  static constexpr int kSide = S::kWidth / 2;
  // If a tile is one row, the lowest input row of the first tile is the topmost of the second.
  static constexpr bool kShares = kSide == 16;
  Sums sums[2], shortcut[2];
  uint32_t above[2], center[2];  // addresses of the cells left of the lane's
  uint32_t above_step[2];        // from a pixel to the next in the row above

  __device__ TilePair(uint32_t map, int tile, const float2 (&bias)[2],
                      const float2 (&shortcut_bias)[2]) {
    const int lane = threadIdx.x % 32;
    const uint32_t plane = map + lane / 16 * S::kPlane;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int pixel = (tile + j) * 16 + lane % 16, y = pixel / kSide, column = pixel % kSide;
      center[j] = plane + (2 * y + S::kHalo) * S::kPitch + column * 2 * 16;
      // Without a halo, one zero cell is read for all pixels of the row above the map.
      const bool outside = S::kHalo == 0 && y == 0;
      above[j] = outside ? plane : center[j] - S::kPitch;
      above_step[j] = outside ? 0 : 16;
      sums[j].start(bias);
      shortcut[j].start(shortcut_bias);
    }
  }

  // Adds the products of one chunk of input channels at one horizontal shift, with w for each of
  // the three rows; at shift 1 also those of the shortcut.
  __device__ void add(int chunk, int dx, const uint4* w, const uint4& direct) {
    const uint32_t plane = chunk * 2 * S::kPlane;
    Fragment a[2][3];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      if (j == 0 || !kShares) load_fragment(a[j][0], above[j] + plane + dx * above_step[j]);
      load_fragment(a[j][1], center[j] + plane + dx * 16);
      load_fragment(a[j][2], center[j] + plane + dx * 16 + S::kPitch);
    }
    if (kShares) a[1][0] = a[0][2];
#pragma unroll
    for (int dy = 0; dy < 3; ++dy) {
      sums[0].add(a[0][dy], w[dy]);
      sums[1].add(a[1][dy], w[dy]);
    }
    if (dx == 1) {
      shortcut[0].add(a[0][1], direct);
      shortcut[1].add(a[1][1], direct);
    }
  }
};

/// Computes the transition from the map x in shared memory to the maps of a row in device memory.
template <class S>
__device__ void enter_next_stage(const Transition& t, uint32_t x, int64_t row) {
  constexpr int kSide = S::kWidth / 2, kArea = kSide * kSide, kBlocks = 2 * S::kChunks;
  constexpr int kParts = S::kWarps > kBlocks ? S::kWarps / kBlocks : 1;
  constexpr int kPartTiles = kArea / 16 / kParts;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int64_t size = int64_t{kBlocks} * 2 * kArea * 4;  // words of a map
#pragma unroll 1
  for (int item = warp; item < kBlocks * kParts; item += S::kWarps) {
    const int block = item % kBlocks, part = item / kBlocks;
    uint4 w[9 * S::kChunks], direct[S::kChunks];
#pragma unroll
    for (int i = 0; i < 9 * S::kChunks; ++i) {
      w[i] = load_weights(t.weights + (block * 9 * S::kChunks + i) * 32 + lane);
    }
#pragma unroll
    for (int i = 0; i < S::kChunks; ++i) {
      direct[i] = load_weights(t.shortcut + (block * S::kChunks + i) * 32 + lane);
    }
    float2 bias[2], shortcut_bias[2];
    load_bias(bias, t.bias + block * 16);
    load_bias(shortcut_bias, t.shortcut_bias + block * 16);
#pragma unroll 1
    for (int i = 0; i < kPartTiles; i += 2) {
      const int tile = part * kPartTiles + i;
      TilePair<S> pair(x, tile, bias, shortcut_bias);
#pragma unroll
      for (int tap = 0; tap < 3 * S::kChunks; ++tap) {
        pair.add(tap / 3, tap % 3, w + tap * 3, direct[tap / 3]);
      }
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int64_t at = row * size;
        store_tile<kArea>(t.h + at, block, tile + j, pair.sums[j].template packed<true>());
        store_tile<kArea>(t.x + at, block, tile + j, pair.shortcut[j].template packed<false>());
      }
    }
  }
}

}  // namespace fedsmooth::residual
