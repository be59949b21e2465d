// A thread block computes an item, one or two whole rows, at a time: the first convolution's map in
// shared memory, then the second convolution of that, while the next item is copied. Both kernels
// of a client stay in shared memory.
#include "fedsmooth/engine/cuda/kernels/rows/row_pair.h"

#include "fedsmooth/engine/cuda/kernels/dependent_launch.cuh"
#include "fedsmooth/engine/cuda/kernels/rows/row_products.cuh"

namespace fedsmooth {
namespace {

// Each warp computes 16 channels. Warps with the same channels share the pixels out, in one part or
// two.
template <int kChannelsOf>
struct PairShape {
  static constexpr int kChannels = kChannelsOf, kChunks = kChannels / 16;
  static constexpr int kSide = 512 / kChannels, kRows = kChannels == 64 ? 2 : 1;
  static constexpr int kWarpsDown = kRowWarps / kChunks, kPixels = kWarpsDown * kDown * 16;
  static constexpr int kParts = kRows * kSide * kSide / kPixels;
  static constexpr int kResident = kChannels == 64 ? 1 : 2;
  static_assert(kParts * kPixels == kRows * kSide * kSide);
};

template <class S>
__host__ __device__ inline int tile_bytes(const RowCut& cut) {
  return 2 * S::kChunks * cut.plane;
}

template <class S>
int shared_bytes(const RowPair& pair, const RowCut& cut) {
  return 2 * kernel_bytes(pair.first) + 2 * tile_bytes<S>(cut) +
         cut.cells() * static_cast<int>(sizeof(int));
}

// A thread's pixels of a part, and the cells of the first two of them in the map between; the cells
// of the others are on the lines below.
struct PairPixels {
  ThreadPixels<Layout::kStacked> at;
  int cell[2], line;

  __device__ PairPixels(const RowConvolution& c, const RowCut& cut, int warp, int channel)
      : at(c, cut, warp, channel), line(cut.columns * 16) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const auto own =
          ItemPixel::find<Layout::kStacked>(cut, c.out.width, warp, 0, half * 8 + lane / 4);
      cell[half] = channel / 8 * cut.plane + channel % 8 * 2 +
                   ((own.image * cut.lines + own.y + 1) * cut.columns + own.x + 1) * 16;
    }
  }
  __device__ int cell_of(int pixel) const { return cell[pixel % 2] + pixel / 2 * line; }

  // Moves on to the pixels of the next part.
  __device__ void move_down(int lines) {
    at.cell[0] += lines * line;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      at.place[half] += lines * at.below;
      cell[half] += lines * line;
    }
  }
};

// Calls finish(pixels, sums) for each part of an item.
template <class S, class Finish>
__device__ void convolve_item(const RowConvolution& c, const RowCut& cut, PairPixels pixels,
                              int client, int channel, const uint8_t* tile, uint32_t kernel,
                              const Finish& finish) {
#pragma unroll 1
  for (int part = 0; part < S::kParts; ++part) {
    WarpSums<false> sums(c, client, channel);
    multiply_tile<3, S::kChunks, false>(cut, pixels.at, shared_address(tile), kernel,
                                        S::kChannels * kernel_pitch(c), sums);
    finish(pixels, sums);
    pixels.move_down(S::kPixels / S::kSide);
  }
}

template <class S>
__global__ void __launch_bounds__(kRowThreads, S::kResident)
    pair_kernel(const __grid_constant__ RowPair pair, const __grid_constant__ RowCut cut) {
  extern __shared__ __align__(128) uint8_t memory[];
  const RowConvolution &a = pair.first, &b = pair.second;
  uint8_t* kernels[] = {memory, memory + kernel_bytes(a)};
  uint8_t* x = memory + 2 * kernel_bytes(a);
  uint8_t* between = x + tile_bytes<S>(cut);
  int* cells = reinterpret_cast<int*>(between + tile_bytes<S>(cut));
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int down = warp / S::kChunks, channel0 = warp % S::kChunks * 16;
  const int channel = channel0 + lane % 4 * 4;
  find_cells(a, cut, cells);
  // The border of the map between stays zero.
  for (int i = threadIdx.x; i < tile_bytes<S>(cut) / 16; i += kRowThreads) {
    store_eight(between, i, Eight<bf16>{});
  }
  const PairPixels pixels(a, cut, down, channel);
  const uint32_t kernel_a = lane_kernel(a, kernels[0], channel0);
  const uint32_t kernel_b = lane_kernel(b, kernels[1], channel0);
  __syncthreads();
  wait_for_earlier_kernels();

  const int64_t all = static_cast<int64_t>(a.clients) * cut.items;
  const int first = static_cast<int>(all * blockIdx.x / gridDim.x);
  const int end = static_cast<int>(all * (blockIdx.x + 1) / gridDim.x);
  const auto load = [&](int i) {
    load_tile<2 * S::kChunks>(a, cut, cells, i / cut.items, i % cut.items, x);
  };
  if (first < end) load(first);
  for (int i = first; i < end; ++i) {
    const int client = i / cut.items, item = i % cut.items;
    if (i == first || item == 0) {
      load_kernel<S::kChunks, false>(a, client, kernels[0]);
      load_kernel<S::kChunks, false>(b, client, kernels[1]);
    }
    commit_copies();
    wait_for_copies<0>();
    __syncthreads();
    convolve_item<S>(
        a, cut, pixels, client, channel, x, kernel_a,
        [&](const PairPixels& own, const WarpSums<false>& sums) {
          finish_pixels<false>(
              a, cut, own.at, client, item, sums,
              [&](int pixel, int64_t to, const Pack<false>& y, const PixelInputs<false>&) {
                *reinterpret_cast<Pack<false>*>(between + own.cell_of(pixel)) = y;
                if (a.y != nullptr) write_pixel<false>(a.y, to, y);
              });
        });
    __syncthreads();
    if (i + 1 < end) load(i + 1);
    convolve_item<S>(b, cut, pixels, client, channel, between, kernel_b,
                     [&](const PairPixels& own, const WarpSums<false>& sums) {
                       finish_pixels<false>(
                           b, cut, own.at, client, item, sums,
                           [&](int, int64_t to, const Pack<false>& y, const PixelInputs<false>&) {
                             write_pixel<false>(b.y, to, y);
                           });
                     });
    __syncthreads();
  }
}

template <class S>
RowCut cut_for(const RowPair& pair) {
  return cut_rows(pair.first, S::kRows, S::kSide);
}

template <class S>
cudaError_t launch(const RowPair& pair, cudaStream_t stream) {
  const RowCut cut = cut_for<S>(pair);
  const int bytes = shared_bytes<S>(pair, cut);
  const auto kernel = pair_kernel<S>;
  const cudaError_t status =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (status != cudaSuccess) return status;
  const int64_t items = int64_t{pair.first.clients} * cut.items;
  const auto blocks =
      static_cast<unsigned>(std::min<int64_t>(items, multiprocessors() * S::kResident));
  return launch_dependent(kernel, blocks, kRowThreads, bytes, stream, pair, cut);
}

template <class S>
bool fits(const RowPair& pair) {
  const auto is = [](const MapShape& map) {
    return map.channels == S::kChannels && map.height == S::kSide && map.width == S::kSide;
  };
  for (const RowConvolution& c : {pair.first, pair.second}) {
    if (!is(c.in) || !is(c.out) || c.kernel != 3 || c.stride != 1 || c.spread != 1 ||
        c.padding != 1 || c.sums != nullptr) {
      return false;
    }
  }
  return shared_bytes<S>(pair, cut_for<S>(pair)) <= shared_memory_limit();
}

}  // namespace

bool can_pair(const RowPair& pair) {
  return fits<PairShape<16>>(pair) || fits<PairShape<32>>(pair) || fits<PairShape<64>>(pair);
}

cudaError_t convolve_pair(const RowPair& pair, cudaStream_t stream) {
  return with_channels(pair.first.in.channels, [&](auto channels) {
    return launch<PairShape<decltype(channels)::value>>(pair, stream);
  });
}

}  // namespace fedsmooth
