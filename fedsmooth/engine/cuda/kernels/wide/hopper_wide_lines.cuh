// Convolutions with a 3x3 kernel and stride one, where has_lines() says that tiles of 16x16 pixels
// fit the map, on Hopper. A thread block computes 64 channels of 16x16 pixels of a row. For each 64
// channels of x, the tile with the pixels around it is copied once for all nine taps: it is not
// swizzled, so that every tap reads the same tile at another address. The kernel is copied in nine
// steps, one for each tap.
//
// In the products, rows are channels and columns are pixels: a warpgroup has 16 lines of eight.
#pragma once

#include "fedsmooth/engine/cuda/kernels/dependent_launch.cuh"
#include "fedsmooth/engine/cuda/kernels/wide/hopper_warpgroups.cuh"
#include "fedsmooth/engine/cuda/kernels/wide/wide_cut.h"
#include "fedsmooth/engine/cuda/kernels/wide/wide_results.cuh"

namespace fedsmooth::wide::lines {

constexpr int kSide = 16, kTilePixels = kSide * kSide;  // of a tile of results
constexpr int kLine = kSide + 2;                        // pixels in a line of the tile of x
// Bytes of a plane: eight channels of all pixels of the tile of x. The one pixel more puts the
// cells of a pixel into different banks.
constexpr int kPlane = (kLine * kLine + 1) * 16;
constexpr int kMapBytes = 8 * kPlane, kMaps = 2;  // bytes of a tile of x, number of tiles
constexpr int kKernelStages = 3, kTaps = 9;
constexpr int kResultPitch = 64 + 4;
constexpr int kProductBytes = kKernelStages * kTileBytes + kMaps * kMapBytes;
constexpr int kBytes = (kProductBytes > kResultBytes<kTilePixels, kResultPitch>
                            ? kProductBytes
                            : kResultBytes<kTilePixels, kResultPitch>)+kAlignment;

struct Tile {
  int client, part, row, y0, x0, column0;

  __device__ Tile(const LinesCut& cut) {
    client = blockIdx.y;
    part = blockIdx.x / cut.across;
    column0 = blockIdx.x % cut.across * 64;
    row = part / (cut.down * cut.along);
    y0 = part / cut.along % cut.down * kSide;
    x0 = part % cut.along * kSide;
  }
};

// Starts copying the 64 channels from `channel` on of the tile's pixels and those around it.
inline __device__ void copy_map(const RowConvolution& c, const Tile& tile, int channel,
                                uint32_t to) {
  const bf16* x = static_cast<const bf16*>(c.x) +
                  (static_cast<int64_t>(tile.client) * c.rows + tile.row) * c.in.row_size();
  const int plane = threadIdx.x % 8;
  const bool deep = channel + 8 * plane < c.in.channels;
  for (int pixel = static_cast<int>(threadIdx.x) / 8; pixel < kLine * kLine;
       pixel += kThreads / 8) {
    const int y = tile.y0 + pixel / kLine - c.padding, column = tile.x0 + pixel % kLine - c.padding;
    const bool real = deep && static_cast<unsigned>(y) < static_cast<unsigned>(c.in.height) &&
                      static_cast<unsigned>(column) < static_cast<unsigned>(c.in.width);
    const int64_t from =
        static_cast<int64_t>(y * c.in.width + column) * c.in.channels + channel + 8 * plane;
    copy_cell<false>(to + plane * kPlane + pixel * 16, real ? x + from : x, real);
  }
}

// Copies the kernel step by step: in each, the weights of one tap from 64 channels of x to the
// tile's 64 channels of results.
class KernelCopies {
 public:
  __device__ KernelCopies(const RowConvolution& c, const Tile& tile)
      : channels_(c.in.channels), channel_(threadIdx.x % 8 * 8) {
    const int row = threadIdx.x / 8;
    from_ = static_cast<const bf16*>(c.weights) + tile.client * c.weights_client +
            static_cast<int64_t>(tile.column0 + row) * channels_ + channel_;
    rows_ = c.out.channels - tile.column0 - row;
    of_tap_ = static_cast<int64_t>(c.out.channels) * channels_;
    to_ = cell_at(row, threadIdx.x % 8);
  }

  // Starts copying the next step's weights, which are those of tap `tap`.
  __device__ void start(int tap, uint32_t stage) {
    constexpr int kRows = kThreads / 8;
    const int rows = channel_ < channels_ ? rows_ : 0;
#pragma unroll
    for (int i = 0; i < 64 / kRows; ++i) {
      copy_cell<false>(stage + to_ + i * kRows * kRowBytes,
                       from_ + static_cast<int64_t>(i) * kRows * channels_, i * kRows < rows);
    }
    from_ += of_tap_;
    if (tap + 1 < kTaps) return;
    from_ += kDepth - kTaps * of_tap_;
    channel_ += kDepth;
  }

 private:
  int channels_, channel_, rows_, to_;
  int64_t of_tap_;
  const bf16* from_;
};

inline __device__ void multiply(Sums<2>& sums, uint32_t kernel, uint32_t map, int tap) {
  const int shift = (tap / 3 * kLine + tap % 3) * 16;
  const uint64_t left = describe_tile<kRowBytes>(uniform(kernel));
  const uint64_t right = describe_pixels(uniform(map + shift), kPlane, kLine * 16);
  begin_products();
#pragma unroll
  for (int d = 0; d < kDepth / 16; ++d) {
    multiply_64x128x16<false, false>(sums.v, left + 2 * d, right + d * (2 * kPlane / 16));
  }
  commit_products();
}

__global__ void __launch_bounds__(kThreads, 2)
    convolve_kernel(const __grid_constant__ RowConvolution c,
                    const __grid_constant__ LinesCut cut) {
  uint8_t* memory = aligned_tiles();
  const uint32_t kernels = shared_address(memory), maps = kernels + kKernelStages * kTileBytes;
  const Tile tile(cut);
  const int warpgroup = threadIdx.x / 128, chunks = (c.in.channels + kDepth - 1) / kDepth;
  static_assert(kTaps % kKernelStages == 0, "a tap's stage is the same in every group of channels");
  wait_for_earlier_kernels();
  KernelCopies copies(c, tile);
  copy_map(c, tile, 0, maps);
  for (int tap = 0; tap < kKernelStages - 1; ++tap) {
    copies.start(tap, kernels + tap * kTileBytes);
    commit_copies();
  }
  Sums<2> sums;
  uint32_t map = maps, other = maps + kMapBytes;
  for (int chunk = 0; chunk < chunks; ++chunk) {
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) {
      wait_for_copies<kKernelStages - 2>();
      ByWarpgroups::before_barrier();
      __syncthreads();
      multiply(sums, kernels + tap % kKernelStages * kTileBytes, map + warpgroup * 8 * 16, tap);
      // The products that read the other tile of x were waited for before the barrier.
      if (tap == 0 && chunk + 1 < chunks) copy_map(c, tile, (chunk + 1) * kDepth, other);
      const int next = (tap + kKernelStages - 1) % kTaps;
      if (next == tap + kKernelStages - 1 || chunk + 1 < chunks) {
        copies.start(next, kernels + next % kKernelStages * kTileBytes);
      }
      commit_copies();
    }
    const uint32_t done = map;
    map = other;
    other = done;
  }
  ByWarpgroups::finish();
  wait_for_copies<0>();
  __syncthreads();
  const Results r{tile.client, tile.column0, tile.part, cut.tiles,
                  reinterpret_cast<float*>(memory)};
  for_each_sum(sums, [&](int channel, int pixel, float low, float high) {
    float* to = r.values + (warpgroup * 128 + pixel) * kResultPitch + channel;
    to[0] = low;
    to[kResultPitch] = high;
  });
  __syncthreads();
  finish_results<kTilePixels, 64, kResultPitch>(c, r, [&](int i) {
    const int y = tile.y0 + i / 8 % kSide, x = tile.x0 + i / 128 * 8 + i % 8;
    const bool real = y < c.out.height && x < c.out.width;
    return real ? tile.row * c.out.pixels() + y * c.out.width + x : -1;
  });
}

inline cudaError_t launch(const RowConvolution& c, cudaStream_t stream) {
  const LinesCut cut(c);
  const cudaError_t status =
      cudaFuncSetAttribute(convolve_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (status != cudaSuccess) return status;
  const dim3 grid(static_cast<unsigned>(cut.tiles) * cut.across, c.clients);
  return launch_dependent(convolve_kernel, grid, kThreads, kBytes, stream, c, cut);
}

}  // namespace fedsmooth::wide::lines
