// Products of a tile with a client's kernel, both in shared memory, by a warp (mma.sync): 64 pixels
// x 16 or 32 channels, in four tiles of 16 pixels. Rows of the kernel are permuted so that a
// thread's sums are of neighbouring channels.
//
// Tiles are stacked if the map allows it: four lines of 16 neighbouring pixels, or of 8 from each
// of two rows. A line of x then serves the three lines of y that it reaches, and is read once for
// each column of the kernel: 18 reads of x for the 36 products of tiles and taps.
#pragma once

#include "fedsmooth/engine/cuda/kernels/rows/row_finish.cuh"

namespace fedsmooth {

__host__ __device__ inline int kernel_pitch(const RowConvolution& c) {
  return 2 * c.in.channels + 16;  // bytes of a row; neighbouring rows are in different banks
}
__host__ __device__ inline int kernel_bytes(const RowConvolution& c) {
  return c.kernel * c.kernel * c.out.channels * kernel_pitch(c);
}

template <int kChunks, bool kWide>
__device__ void load_kernel(const RowConvolution& c, int client, uint8_t* to) {
  constexpr int kChannels = Across<kWide>::kChannels, kOfThread = Across<kWide>::kOfThread;
  constexpr int kEights = 2 * kChunks;
  const bf16* from = static_cast<const bf16*>(c.weights) + client * c.weights_client;
  const int count = c.kernel * c.kernel * c.out.channels * kEights;
  for (int i = threadIdx.x; i < count; i += kRowThreads) {
    const int row = i / kEights, k = row % kChannels;
    const int permuted = k % kOfThread / 2 * 8 + k / kOfThread * 2 + k % 2;
    copy_async(to + (row - k + permuted) * kernel_pitch(c) + i % kEights * 16, from + i * 8, true);
  }
}

template <bool kWide>
__device__ void multiply(float (&sums)[2 * Across<kWide>::kTiles][4], const uint32_t (&a)[4],
                         const uint32_t (&b)[Across<kWide>::kTiles][4]) {
#pragma unroll
  for (int n = 0; n < Across<kWide>::kTiles; ++n) {
    mma_16816(sums[2 * n], a, b[n][0], b[n][1]);
    mma_16816(sums[2 * n + 1], a, b[n][2], b[n][3]);
  }
}

// Returns by how many lines (or columns) of x a tap moves a tile. With kHalved, a tile meets only
// the taps of its parity, which move it by whole pixels; `offset`, 0 or 1, is the tile's parity.
template <Layout kLayout, int kKernel>
__device__ constexpr int tap_move(int offset, int tap) {
  return kLayout == Layout::kHalved ? (offset + tap - kKernel / 2) / 2 : tap;
}
template <Layout kLayout, int kKernel>
__device__ constexpr bool tap_meets(int offset, int tap) {
  return kLayout != Layout::kHalved || (offset + tap - kKernel / 2) % 2 == 0;
}

// Adds an item's products. `tile` is the address of its x, `kernel` that of the lane's row of the
// first tap. Pairs of tile and tap that do not meet are left out: they would add zeros.
template <int kKernel, int kChunks, bool kWide, Layout kLayout>
__device__ void multiply_tile(const RowCut& cut, const ThreadPixels<kLayout>& at, uint32_t tile,
                              uint32_t kernel, int tap_bytes, WarpSums<kWide>& sums) {
  constexpr int kTiles = Across<kWide>::kTiles, kPitch = 32 * kChunks + 16;
#pragma unroll
  for (int chunk = 0; chunk < kChunks; ++chunk) {
#pragma unroll
    for (int tap = 0; tap < kKernel * kKernel; ++tap) {
      uint32_t b[kTiles][4];
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
        load_matrices<false>(b[n], kernel + tap * tap_bytes + n * 16 * kPitch + chunk * 32);
      }
#pragma unroll
      for (int m = 0; m < kDown; ++m) {
        const int line = tap / kKernel, column = tap % kKernel;
        if (!tap_meets<kLayout, kKernel>(m / 2, line)) continue;
        if (!tap_meets<kLayout, kKernel>(m % 2, column)) continue;
        const int shift = tap_move<kLayout, kKernel>(m / 2, line) * cut.columns +
                          tap_move<kLayout, kKernel>(m % 2, column);
        uint32_t a[4];
        load_matrices<false>(a, tile + at.cell[kLayout == Layout::kAny ? m : 0] +
                                    chunk * 2 * cut.plane + shift * 16);
        multiply<kWide>(sums.v[m], a, b);
      }
    }
  }
}

template <int kKernel, int kChunks, bool kWide>
__device__ void multiply_tile(const RowCut& cut, const ThreadPixels<Layout::kStacked>& at,
                              uint32_t tile, uint32_t kernel, int tap_bytes,
                              WarpSums<kWide>& sums) {
  constexpr int kTiles = Across<kWide>::kTiles, kPitch = 32 * kChunks + 16;
#pragma unroll
  for (int chunk = 0; chunk < kChunks; ++chunk) {
#pragma unroll
    for (int column = 0; column < kKernel; ++column) {
      uint32_t b[kKernel][kTiles][4];
#pragma unroll
      for (int n = 0; n < kKernel * kTiles; ++n) {
        const int tap = n / kTiles * kKernel + column;
        load_matrices<false>(b[n / kTiles][n % kTiles],
                             kernel + tap * tap_bytes + n % kTiles * 16 * kPitch + chunk * 32);
      }
#pragma unroll
      for (int line = 0; line < kDown + kKernel - 1; ++line) {
        uint32_t a[4];
        load_matrices<false>(
            a, tile + at.cell[0] + chunk * 2 * cut.plane + (line * cut.columns + column) * 16);
#pragma unroll
        for (int m = 0; m < kDown; ++m) {
          if (line >= m && line < m + kKernel) multiply<kWide>(sums.v[m], a, b[line - m]);
        }
      }
    }
  }
}

/// Returns the address from which a lane reads the kernel's rows of its warp's channels.
inline __device__ uint32_t lane_kernel(const RowConvolution& c, const uint8_t* kernel,
                                       int channel0) {
  const int lane = threadIdx.x % 32;
  return shared_address(kernel) + (channel0 + lane / 16 * 8 + lane % 8) * kernel_pitch(c) +
         lane / 8 % 2 * 16;
}

/// Returns whether a warp's tiles can have layout kStacked.
inline bool can_stack(const RowConvolution& c, const RowCut& cut) {
  return c.stride == 1 && c.spread == 1 && cut.strip % kDown == 0 &&
         (c.out.width == 8 || c.out.width % 16 == 0);
}

}  // namespace fedsmooth
