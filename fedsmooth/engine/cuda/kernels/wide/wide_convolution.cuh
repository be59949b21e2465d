// A thread block multiplies 128 pixels with 64 or 128 channels of the kernel, in steps of 64
// channels of one tap, while it copies the tiles of the next two steps. A tile of x is gathered:
// its rows are the pixels that the tap reads. All taps of a group of 64 channels follow each other,
// so that a pixel is read again while it is in the multiprocessor's cache.
#pragma once

#include "fedsmooth/engine/cuda/kernels/dependent_launch.cuh"
#include "fedsmooth/engine/cuda/kernels/wave/batched_values.cuh"
#include "fedsmooth/engine/cuda/kernels/wide/wide_cut.h"
#include "fedsmooth/engine/cuda/kernels/wide/wide_tiles.cuh"

namespace fedsmooth::wide {

constexpr int kStages = 3;

template <int kTiles>
constexpr int kStageBytes = (kPixels / 64 + kTiles) * kTileBytes;

// The sums of a tile in float32, and those of its columns by several threads, after the products.
template <int kTiles>
constexpr int kPitch = 64 * kTiles + 8;  // values; eight more avoid bank conflicts
template <int kTiles>
constexpr int kResultBytes = kPixels* kPitch<kTiles> * 4 + kThreads * 16 * 4;

template <int kTiles>
constexpr int kSharedBytes = (kStages * kStageBytes<kTiles> > kResultBytes<kTiles>
                                  ? kStages * kStageBytes<kTiles>
                                  : kResultBytes<kTiles>)+kAlignment;

// Where a pixel of the tile is read and written.
struct TilePixel {
  int y, x;  // coordinates that its first tap reads
  int from;  // number of that pixel of the client, which may be outside of the map
  int to;    // number of the pixel that it is; -1: none
};

inline __device__ TilePixel find_pixel(const RowConvolution& c, const PixelClass& of, int64_t p) {
  const auto row = static_cast<int>(p / of.pixels());
  if (row >= c.rows) return {-c.in.height - c.kernel, 0, 0, -1};
  const int i = static_cast<int>(p % of.pixels()), y = i / of.width, x = i % of.width;
  const int from_y = y * c.stride + of.begin_y, from_x = x * c.stride + of.begin_x;
  return {from_y, from_x, row * c.in.pixels() + from_y * c.in.width + from_x,
          row * c.out.pixels() + (of.y0 + y * c.spread) * c.out.width + of.x0 + x * c.spread};
}

// What a block computes.
struct BlockTile {
  int client, tile, column0;  // tile: number among those of the client
  PixelClass of;
  int64_t first;  // number of its first pixel among those of the class

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

// Copies the tiles of one step after another. Eight threads copy a row.
template <int kTiles>
class Copies {
 public:
  __device__ Copies(const RowConvolution& c, const BlockTile& block, const TilePixel* pixels)
      : c_(c), of_(block.of), cell_(threadIdx.x % 8) {
    const int row = threadIdx.x / 8;
    x_ = static_cast<const bf16*>(c.x) +
         static_cast<int64_t>(block.client) * c.rows * c.in.row_size();
    weights_ = static_cast<const bf16*>(c.weights) + block.client * c.weights_client +
               static_cast<int64_t>(block.column0 + row) * c.in.channels + 8 * cell_;
    columns_ = c.out.channels - block.column0 - row;
    to_ = cell_at(row, cell_);
#pragma unroll
    for (int i = 0; i < kPixels / kRows; ++i) {
      const TilePixel& pixel = pixels[row + i * kRows];
      y_[i] = pixel.y;
      x0_[i] = pixel.x;
      from_[i] = x_ + static_cast<int64_t>(pixel.from) * c.in.channels + 8 * cell_;
    }
  }

  // Starts the copies of the next step into a stage.
  __device__ void start(uint32_t stage) {
    const int channel = chunk_ * kDepth;
    const bool deep = channel + 8 * cell_ < c_.in.channels;
    const int64_t by = static_cast<int64_t>(j_ * c_.in.width + i_) * c_.in.channels + channel;
#pragma unroll
    for (int k = 0; k < kPixels / kRows; ++k) {
      const bool real = deep && static_cast<unsigned>(y_[k] + j_) < c_.in.height &&
                        static_cast<unsigned>(x0_[k] + i_) < c_.in.width;
      copy_cell<true>(stage + to_ + k * kRows * kRowBytes, real ? from_[k] + by : x_, real);
    }
    const int tap = (of_.first_y + j_ * c_.spread) * c_.kernel + of_.first_x + i_ * c_.spread;
    const bf16* weights =
        weights_ + static_cast<int64_t>(tap) * c_.out.channels * c_.in.channels + channel;
#pragma unroll
    for (int k = 0; k < 64 * kTiles / kRows; ++k) {
      const bool real = deep && k * kRows < columns_;
      copy_cell<false>(stage + kPixels / 64 * kTileBytes + to_ + k * kRows * kRowBytes,
                       real ? weights + static_cast<int64_t>(k) * kRows * c_.in.channels : x_,
                       real);
    }
    if (++i_ < of_.taps_x) return;
    i_ = 0;
    if (++j_ < of_.taps_y) return;
    j_ = 0;
    ++chunk_;
  }

 private:
  static constexpr int kRows = kThreads / 8;  // rows that are copied at the same time

  const RowConvolution& c_;
  const PixelClass& of_;
  int cell_, columns_, to_;
  int chunk_ = 0, j_ = 0, i_ = 0;  // of the next step: group of channels, tap
  const bf16 *x_, *weights_;
  const bf16* from_[kPixels / kRows];
  int y_[kPixels / kRows], x0_[kPixels / kRows];
};

// Finishes the results of a block: each thread those of eight channels of several pixels.
template <int kTiles>
__device__ void finish_tile(const RowConvolution& c, const BlockTile& block, int parts,
                            const TilePixel* pixels, float* results) {
  constexpr int kCells = 8 * kTiles, kLines = kThreads / kCells;
  const int line = threadIdx.x / kCells, column = threadIdx.x % kCells * 8;
  const int channel = block.column0 + column;
  const bool real = channel < c.out.channels;
  float bias[8] = {}, mean[8] = {}, inverse[8] = {}, total[8] = {}, products[8] = {};
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    if (!real) continue;
    if (c.bias != nullptr) bias[j] = c.bias[block.client * c.bias_client + channel + j];
    if (c.normed == nullptr) continue;
    const NormValues& norm = c.values[block.client * c.values_client + channel + j];
    mean[j] = norm.mean;
    inverse[j] = norm.inverse;
  }
  const int64_t client = static_cast<int64_t>(block.client) * c.rows * c.out.pixels();
#pragma unroll 2
  for (int i = line; i < kPixels; i += kLines) {
    const int to = pixels[i].to;
    if (!real || to < 0) continue;
    const int64_t at = ((client + to) * c.out.channels + channel) / 8;
    Eight<bf16> add = {}, mask = {}, normed = {}, y;
    if (c.add != nullptr) add = load_eight<bf16>(c.add, at);
    if (c.mask != nullptr) mask = load_eight<bf16>(c.mask, at);
    if (c.normed != nullptr) normed = load_eight<bf16>(c.normed, at);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      float value = results[i * kPitch<kTiles> + column + j] + bias[j];
      if (c.add != nullptr) value += to_float(add.value[j]);
      if (c.relu && value < 0.0f) value = 0.0f;
      if (c.mask != nullptr && !(to_float(mask.value[j]) > 0.0f)) value = 0.0f;
      store(y.value + j, value);
      value = to_float(y.value[j]);
      const float by =
          c.normed == nullptr ? value : (to_float(normed.value[j]) - mean[j]) * inverse[j];
      total[j] += value;
      products[j] += value * by;
    }
    store_eight(c.y, at, y);
  }
  if (c.sums == nullptr) return;
  float* sums = results + kPixels * kPitch<kTiles>;  // [line, 2, column]
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    sums[(line * 2) * 8 * kCells + column + j] = total[j];
    sums[(line * 2 + 1) * 8 * kCells + column + j] = products[j];
  }
  __syncthreads();
  const int kind = threadIdx.x / (8 * kCells), of = threadIdx.x % (8 * kCells);
  if (kind > 1 || block.column0 + of >= c.out.channels) return;
  float sum = 0.0f;
  for (int i = 0; i < kLines; ++i) sum += sums[(i * 2 + kind) * 8 * kCells + of];
  const int64_t part = static_cast<int64_t>(block.client) * parts + block.tile;
  c.sums[(part * 2 + kind) * c.out.channels + block.column0 + of] = sum;
}

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
  for (int s = 0; s < steps; ++s) {
    wait_for_copies<kStages - 2>();
    Products::before_barrier();
    __syncthreads();
    const uint32_t stage = stages + s % kStages * kStageBytes<kTiles>;
    Products::multiply(sums, stage + warpgroup * kTileBytes, stage + kPixels / 64 * kTileBytes);
    if (s + kStages - 1 < steps) {
      copies.start(stages + (s + kStages - 1) % kStages * kStageBytes<kTiles>);
    }
    commit_copies();
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
  finish_tile<kTiles>(c, block, cut.tiles, pixels, results);
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
