// Convolutions with many channels or large kernels. A thread block computes 64 or 128 channels of
// 128 pixels. Each step adds the products of one tap with 64 channels of x, while the tiles of the
// next two steps are copied. A tile of x is gathered: its rows are the pixels that the tap reads.
// All taps of a group of 64 channels follow each other, so that a pixel is read again while it is
// in the multiprocessor's cache.
#pragma once

#include "fedsmooth/engine/cuda/kernels/dependent_launch.cuh"
#include "fedsmooth/engine/cuda/kernels/wide/wide_cut.h"
#include "fedsmooth/engine/cuda/kernels/wide/wide_results.cuh"
#include "fedsmooth/engine/cuda/kernels/wide/wide_tiles.cuh"

namespace fedsmooth::wide {

constexpr int kStages = 3;

template <int kTiles>
constexpr int kStageBytes = (kPixels / 64 + kTiles) * kTileBytes;

template <int kTiles>
constexpr int kPitch = 64 * kTiles + 8;  // of results; eight more avoid bank conflicts

template <int kTiles>
constexpr int kSharedBytes = (kStages * kStageBytes<kTiles> > kResultBytes<kPixels, kPitch<kTiles>>
                                  ? kStages * kStageBytes<kTiles>
                                  : kResultBytes<kPixels, kPitch<kTiles>>)+kAlignment;

// Where a pixel of the tile is read and written.
struct TilePixel {
  int y, x;  // coordinates that its first tap reads
  int from;  // index of that pixel among the client's, meaningless outside of the map
  int to;    // index of the written pixel among the client's; -1: none
};

inline __device__ TilePixel find_pixel(const RowConvolution& c, const PixelClass& of, int64_t p) {
  const auto row = static_cast<int>(p / of.pixels());
  if (row >= c.rows) return {-c.in.height - c.kernel, 0, 0, -1};
  const int i = static_cast<int>(p % of.pixels()), y = i / of.width, x = i % of.width;
  const int from_y = y * c.stride + of.begin_y, from_x = x * c.stride + of.begin_x;
  return {from_y, from_x, row * c.in.pixels() + from_y * c.in.width + from_x,
          row * c.out.pixels() + (of.y0 + y * c.spread) * c.out.width + of.x0 + x * c.spread};
}

// GPUs of compute capability 8.6 and 8.9 have 99 KB for a thread block, of which the kernel's array
// of pixels is a part.
static_assert(kSharedBytes<2> + kPixels * sizeof(TilePixel) <= 99 * 1024);

// The pixels and channels that a block computes.
struct BlockTile {
  int client, tile, column0;  // tile: its index among the client's; column0: first channel
  PixelClass of;
  int64_t first;  // index of its first pixel among those of the class

  __device__ BlockTile(const WideCut& cut, int columns) {
    client = blockIdx.y;
    tile = blockIdx.x / cut.across;
    column0 = blockIdx.x % cut.across * columns;
    int at = tile, k = 0;
    while (k + 1 < cut.count && at >= cut.classes[k].tiles) at -= cut.classes[k++].tiles;
    of = cut.classes[k];
    first = static_cast<int64_t>(at) * kPixels;
  }
};

// Copies the tiles of x and of the kernel step by step. Eight threads copy a row of a tile.
template <int kTiles>
class Copies {
 public:
  __device__ Copies(const RowConvolution& c, const BlockTile& block, const TilePixel* pixels)
      : c_(c), of_(block.of), channel_(threadIdx.x % 8 * 8) {
    const int row = threadIdx.x / 8;
    const bf16* x = static_cast<const bf16*>(c.x) +
                    static_cast<int64_t>(block.client) * c.rows * c.in.row_size() + channel_;
    weights_ = static_cast<const bf16*>(c.weights) + block.client * c.weights_client +
               static_cast<int64_t>(block.column0 + row) * c.in.channels + channel_;
    columns_ = c.out.channels - block.column0 - row;
    to_ = cell_at(row, threadIdx.x % 8);
#pragma unroll
    for (int k = 0; k < kPixels / kRows; ++k) {
      const TilePixel& pixel = pixels[row + k * kRows];
      inside_[k] = bits_inside(pixel.y, of_.taps_y, c.in.height) |
                   bits_inside(pixel.x, of_.taps_x, c.in.width) << kMostTaps;
      from_[k] = x + static_cast<int64_t>(pixel.from) * c.in.channels;
    }
  }

  // Starts copying the next step's tiles into a stage.
  __device__ void start(uint32_t stage) {
    const bool deep = chunk_ + channel_ < c_.in.channels;
    const uint32_t tap = 1u << j_ | 1u << (kMostTaps + i_);
    const int64_t by = static_cast<int64_t>(j_ * c_.in.width + i_) * c_.in.channels + chunk_;
#pragma unroll
    for (int k = 0; k < kPixels / kRows; ++k) {
      copy_cell<true>(stage + to_ + k * kRows * kRowBytes, from_[k] + by,
                      deep && (inside_[k] & tap) == tap);
    }
    const int number = (of_.first_y + j_ * c_.spread) * c_.kernel + of_.first_x + i_ * c_.spread;
    const bf16* weights =
        weights_ + static_cast<int64_t>(number) * c_.out.channels * c_.in.channels + chunk_;
    const int64_t next = static_cast<int64_t>(kRows) * c_.in.channels;
    const int columns = deep ? columns_ : 0;
#pragma unroll
    for (int k = 0; k < 64 * kTiles / kRows; ++k) {
      copy_cell<false>(stage + kPixels / 64 * kTileBytes + to_ + k * kRows * kRowBytes, weights,
                       k * kRows < columns);
      weights += next;
    }
    if (++i_ < of_.taps_x) return;
    i_ = 0;
    if (++j_ < of_.taps_y) return;
    j_ = 0;
    chunk_ += kDepth;
  }

 private:
  static constexpr int kRows = kThreads / 8;  // rows of a tile that are copied at the same time
  static constexpr int kMostTaps = 16;        // in a direction

  // Returns a set bit for each tap in one direction that reads inside of the map.
  static __device__ uint32_t bits_inside(int first, int taps, int size) {
    uint32_t bits = 0;
    for (int j = 0; j < taps; ++j) {
      if (first + j >= 0 && first + j < size) bits |= 1u << j;
    }
    return bits;
  }

  const RowConvolution& c_;
  const PixelClass& of_;
  int channel_, columns_, to_;
  int chunk_ = 0, j_ = 0, i_ = 0;  // of the next step: first channel of x; tap, down and across
  const bf16* weights_;
  const bf16* from_[kPixels / kRows];
  uint32_t inside_[kPixels / kRows];
};

template <class Products, int kTiles>
__global__ void __launch_bounds__(kThreads, 2)
    convolve_kernel(const __grid_constant__ RowConvolution c, const __grid_constant__ WideCut cut) {
  __shared__ TilePixel pixels[kPixels];
  uint8_t* memory = aligned_tiles();
  const uint32_t stages = shared_address(memory);
  const BlockTile block(cut, 64 * kTiles);
  if (threadIdx.x < kPixels) {
    pixels[threadIdx.x] = find_pixel(c, block.of, block.first + threadIdx.x);
  }
  __syncthreads();
  wait_for_earlier_kernels();
  Copies<kTiles> copies(c, block, pixels);
  const int steps = block.of.taps() * ((c.in.channels + kDepth - 1) / kDepth);
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < steps) copies.start(stages + s * kStageBytes<kTiles>);
    commit_copies();
  }
  Sums<kTiles> sums;
  const int warpgroup = threadIdx.x / 128;
  uint32_t stage = stages, before = stages + (kStages - 1) * kStageBytes<kTiles>;
  for (int s = 0; s < steps; ++s) {
    wait_for_copies<kStages - 2>();
    Products::before_barrier();
    __syncthreads();
    Products::multiply(sums, stage + warpgroup * kTileBytes, stage + kPixels / 64 * kTileBytes);
    if (s + kStages - 1 < steps) copies.start(before);
    commit_copies();
    before = stage;
    stage = stage == stages + (kStages - 1) * kStageBytes<kTiles> ? stages
                                                                  : stage + kStageBytes<kTiles>;
  }
  Products::finish();
  wait_for_copies<0>();
  __syncthreads();
  auto* results = reinterpret_cast<float*>(memory);
  for_each_sum(sums, [&](int row, int column, float low, float high) {
    float* to = results + (warpgroup * 64 + row) * kPitch<kTiles> + column;
    *reinterpret_cast<float2*>(to) = make_float2(low, high);
  });
  __syncthreads();
  const Results r{block.client, block.column0, block.tile, cut.tiles, results};
  finish_results<kPixels, 64 * kTiles, kPitch<kTiles>>(c, r, [&](int i) { return pixels[i].to; });
}

template <class Products, int kTiles>
cudaError_t launch_convolution(const RowConvolution& c, const WideCut& cut, cudaStream_t stream) {
  const auto kernel = convolve_kernel<Products, kTiles>;
  const cudaError_t status = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes<kTiles>);
  if (status != cudaSuccess) return status;
  const dim3 grid(static_cast<unsigned>(cut.tiles) * cut.across, c.clients);
  return launch_dependent(kernel, grid, kThreads, kSharedBytes<kTiles>, stream, c, cut);
}

template <class Products>
cudaError_t launch_convolution(const RowConvolution& c, cudaStream_t stream) {
  const WideCut cut = cut_wide(c);
  return columns_for(c.out.channels) == 128 ? launch_convolution<Products, 2>(c, cut, stream)
                                            : launch_convolution<Products, 1>(c, cut, stream);
}

}  // namespace fedsmooth::wide
