// A thread block computes one item (row_tiles.cuh) after another, while it copies the next one's
// tile. A client's kernel is in shared memory.
#include "fedsmooth/engine/cuda/kernels/rows/row_convolution.h"

#include "fedsmooth/engine/cuda/kernels/dependent_launch.cuh"
#include "fedsmooth/engine/cuda/kernels/rows/row_float.h"
#include "fedsmooth/engine/cuda/kernels/rows/row_norm.h"
#include "fedsmooth/engine/cuda/kernels/rows/row_products.cuh"
#include "fedsmooth/engine/cuda/kernels/wide/wide_convolution.h"

namespace fedsmooth {
namespace {

struct Shared {
  uint8_t *kernel, *tiles;
  float* sums;  // [warp, 2, 32]
  int* cells;
};

constexpr int kSumBytes = kRowWarps * 64 * 4;

__host__ __device__ inline int tiles_bytes(const RowConvolution& c, const RowCut& cut) {
  return 2 * c.in.channels / 8 * cut.plane;
}

inline int shared_bytes(const RowConvolution& c, const RowCut& cut) {
  return kernel_bytes(c) + tiles_bytes(c, cut) + kSumBytes +
         cut.strips * cut.cells() * static_cast<int>(sizeof(int));
}

// Writes an item's sums, over the warps with the same channels in order. The sum of y (x - m) s
// follows from the sums of y x and y and the norm's mean m and inverse s.
template <bool kWide>
__device__ void write_sums(const RowConvolution& c, const RowCut& cut, int client, int item,
                           int warps_across, const float* sums) {
  constexpr int kChannels = Across<kWide>::kChannels;
  const int k = threadIdx.x;
  if (k >= c.out.channels) return;
  float total = 0.0f, products = 0.0f;
  for (int warp = k / kChannels; warp < kRowWarps; warp += warps_across) {
    total += sums[warp * 64 + k % kChannels];
    products += sums[warp * 64 + 32 + k % kChannels];
  }
  if (c.normed != nullptr) {
    const NormValues& norm = c.values[client * c.values_client + k];
    products = (products - norm.mean * total) * norm.inverse;
  }
  float* out = c.sums + (static_cast<int64_t>(client) * cut.items + item) * 2 * c.out.channels;
  out[k] = total;
  out[c.out.channels + k] = products;
}

// Thread blocks on a multiprocessor, limited by shared memory or registers.
template <int kChunks, bool kWide>
constexpr int kResident = kWide ? (kChunks == 4 ? 1 : 2) : 3;

template <int kKernel, int kChunks, bool kWide, Layout kLayout>
__global__ void __launch_bounds__(kRowThreads, kResident<kChunks, kWide>)
    convolve_kernel(const __grid_constant__ RowConvolution c, const __grid_constant__ RowCut cut) {
  extern __shared__ __align__(128) uint8_t memory[];
  constexpr int kChannels = Across<kWide>::kChannels;
  const int tile_bytes = tiles_bytes(c, cut) / 2;
  const Shared shared{
      memory + kSumBytes, memory + kSumBytes + kernel_bytes(c), reinterpret_cast<float*>(memory),
      reinterpret_cast<int*>(memory + kSumBytes + kernel_bytes(c) + 2 * tile_bytes)};
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int warps_across = c.out.channels / kChannels, column = warp % warps_across;
  const int channel = column * kChannels + lane % 4 * Across<kWide>::kOfThread;
  find_cells(c, cut, shared.cells);
  const ThreadPixels<kLayout> at(c, cut, warp / warps_across, channel);
  const uint32_t kernel = lane_kernel(c, shared.kernel, column * kChannels);
  __syncthreads();
  wait_for_earlier_kernels();

  const int64_t all = static_cast<int64_t>(c.clients) * cut.items;
  const int first = static_cast<int>(all * blockIdx.x / gridDim.x);
  const int end = static_cast<int>(all * (blockIdx.x + 1) / gridDim.x);
  const auto load = [&](int i) {
    load_tile<2 * kChunks>(c, cut, shared.cells, i / cut.items, i % cut.items,
                           shared.tiles + i % 2 * tile_bytes);
    commit_copies();
    prefetch_inputs(c, cut, i / cut.items, i % cut.items);
  };
  if (first < end) load(first);
  for (int i = first; i < end; ++i) {
    const int client = i / cut.items, item = i % cut.items;
    if (i == first || item == 0) {
      load_kernel<kChunks, kWide>(c, client, shared.kernel);
      commit_copies();
      wait_for_copies<0>();
    }
    if (i + 1 < end) {
      load(i + 1);
      wait_for_copies<1>();
    } else {
      wait_for_copies<0>();
    }
    __syncthreads();
    if (at.any) {
      WarpSums<kWide> sums(c, client, channel);
      multiply_tile<kKernel, kChunks, kWide>(cut, at,
                                             shared_address(shared.tiles) + i % 2 * tile_bytes,
                                             kernel, c.out.channels * kernel_pitch(c), sums);
      finish_item<kWide>(c, cut, at, client, item, sums, shared.sums + warp * 64);
    } else if (c.sums != nullptr) {
      shared.sums[warp * 64 + lane] = shared.sums[warp * 64 + 32 + lane] = 0.0f;
    }
    __syncthreads();
    // Reads the sums before the next item's are written, which is after the next barrier.
    if (c.sums != nullptr) write_sums<kWide>(c, cut, client, item, warps_across, shared.sums);
  }
}

RowCut cut_for(const RowConvolution& c, int limit) {
  const int across = c.out.channels == 16 ? 1 : c.out.channels / 32;
  const int pixels = kRowWarps / across * kDown * 16;
  const auto bytes = [&](const RowCut& cut) { return shared_bytes(c, cut); };
  // Two blocks on a multiprocessor hide each other's waits, if both have enough pixels.
  const RowCut two = choose_cut(c, pixels, (limit - 1024) / 2, bytes);
  const RowCut one = choose_cut(c, pixels, limit, bytes);
  return 2 * two.pixels >= one.pixels ? two : one;
}
RowCut cut_for(const RowConvolution& c) { return cut_for(c, shared_memory_limit()); }

template <int kKernel, int kChunks, bool kWide, Layout kLayout>
cudaError_t launch(const RowConvolution& c, const RowCut& cut, cudaStream_t stream) {
  const int bytes = shared_bytes(c, cut);
  const auto kernel = convolve_kernel<kKernel, kChunks, kWide, kLayout>;
  int resident = 1;
  cudaError_t status =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (status == cudaSuccess) {
    status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, kRowThreads, bytes);
  }
  if (status != cudaSuccess) return status;
  const int64_t items = int64_t{c.clients} * cut.items;
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(items, multiprocessors() * resident));
  return launch_dependent(kernel, blocks, kRowThreads, bytes, stream, c, cut);
}

template <int kKernel, int kChunks, bool kWide>
cudaError_t launch(const RowConvolution& c, cudaStream_t stream) {
  const RowCut cut = cut_for(c);
  if constexpr (kKernel > 1) {
    if (can_stack(c, cut)) return launch<kKernel, kChunks, kWide, Layout::kStacked>(c, cut, stream);
  }
  if constexpr (kChunks == (kWide ? 4 : 2)) {  // see can_halve()
    if (cut.halved) return launch<kKernel, kChunks, kWide, Layout::kHalved>(c, cut, stream);
  }
  return launch<kKernel, kChunks, kWide, Layout::kAny>(c, cut, stream);
}

template <int kKernel>
cudaError_t launch(const RowConvolution& c, cudaStream_t stream) {
  return with_channels(c.in.channels, [&](auto in) {
    return c.out.channels == 16 ? launch<kKernel, decltype(in)::value / 16, false>(c, stream)
                                : launch<kKernel, decltype(in)::value / 16, true>(c, stream);
  });
}

}  // namespace

cudaError_t convolve_rows(Precision precision, const RowConvolution& c, cudaStream_t stream) {
  if (precision == Precision::kFloat32) return convolve_float_rows(c, stream);
  if (c.wide) return convolve_wide(c, stream);
  return c.kernel == 1 ? launch<1>(c, stream) : launch<3>(c, stream);
}

int convolution_parts(Precision precision, const RowConvolution& c) {
  if (precision == Precision::kFloat32) return map_parts(c.rows, c.out);
  if (c.wide) return wide_convolution_parts(c);
  return cut_for(c).items;
}

bool convolution_fits(const RowConvolution& c, int limit) {
  return shared_bytes(c, cut_for(c, limit)) <= limit;
}

}  // namespace fedsmooth
