// The gradient of a kernel by products of a warp (mma.sync). A thread block computes the items of a
// piece one after another, while it copies the next one's tiles. A warp has the sums of all taps
// for 16 channels of x and 16 or 32 of dy; warps with the same channels share the pixels out.
#include "fedsmooth/engine/cuda/kernels/dependent_launch.cuh"
#include "fedsmooth/engine/cuda/kernels/rows/row_float.h"
#include "fedsmooth/engine/cuda/kernels/rows/row_tiles.cuh"
#include "fedsmooth/engine/cuda/kernels/wide/wide_convolution.h"

namespace fedsmooth {
namespace {

constexpr int kMostPieces = 128, kRowsOfPiece = 8, kManyRows = 256;

// Where a pixel of the item is read.
struct PixelSource {
  int cell;   // offset in the tile of x at the pixel's first tap
  int place;  // offset of its first channel in dy, from the item's beginning; kNoPlace: none
};

__host__ __device__ inline int whole_pixels(const RowCut& cut) {
  return (cut.pixels + 15) / 16 * 16;
}
// Returns the bytes of a plane of eight channels of dy. Cells of one pixel are in different banks.
__host__ __device__ inline int plane_of(const RowGradient& g, const RowCut& cut) {
  return (whole_pixels(cut) * 16 + 127) / 128 * 128 + 128 / (g.forward.out.channels / 8);
}
__host__ __device__ inline int stage_bytes(const RowGradient& g, const RowCut& cut) {
  return g.forward.in.channels / 8 * cut.plane + g.forward.out.channels / 8 * plane_of(g, cut);
}
inline int tiles_bytes(const RowGradient& g, const RowCut& cut) {
  return 2 * stage_bytes(g, cut) + (cut.strips * cut.cells() + 1) / 2 * 8 +
         whole_pixels(cut) * static_cast<int>(sizeof(PixelSource));
}
// Returns the bytes of the sums that add_warps() exchanges.
inline int sums_bytes(const RowGradient& g) {
  const RowConvolution& c = g.forward;
  const int tiles = c.out.channels == 16 ? 1 : 2;
  const int kinds = c.in.channels / 16 * (c.out.channels / (16 * tiles));
  const int sums = c.kernel * c.kernel * tiles * 2 * 4 * 32 * static_cast<int>(sizeof(float));
  return kinds < kRowWarps ? kinds * sums : 0;
}
inline int shared_bytes(const RowGradient& g, const RowCut& cut) {
  return std::max(tiles_bytes(g, cut), sums_bytes(g));
}

RowCut cut_for(const RowGradient& g, int limit) {
  constexpr int kPixels = 512;
  return choose_cut(g.forward, kPixels, limit,
                    [&](const RowCut& cut) { return tiles_bytes(g, cut); });
}

inline __device__ void find_pixels(const RowConvolution& c, const RowCut& cut,
                                   PixelSource* pixels) {
  for (int p = threadIdx.x; p < whole_pixels(cut); p += kRowThreads) {
    const int in_strip = cut.strip * c.out.width;
    const bool real = p < cut.pixels;
    const int pixel = p / in_strip * c.out.pixels() + p % in_strip;
    pixels[p] = {real ? first_cell(c, cut, p) : 0, real ? pixel * c.out.channels : kNoPlace};
  }
}

template <int kGroups>
__device__ void load_dy(const RowGradient& g, const RowCut& cut, const PixelSource* pixels,
                        int client, int item, uint8_t* tile) {
  const int row = item / cut.strips * cut.images, plane = plane_of(g, cut);
  const int first = item % cut.strips * cut.strip * g.forward.out.width * g.forward.out.channels;
  const int values = values_of_item(cut, g.forward.rows, row, g.forward.out);
  const bf16* dy = static_cast<const bf16*>(g.dy) +
                   (static_cast<int64_t>(client) * g.forward.rows + row) * g.forward.out.row_size();
  const int count = whole_pixels(cut) * kGroups;
#pragma unroll 4
  for (int i = threadIdx.x; i < count; i += kRowThreads) {
    const int p = i / kGroups, group = i % kGroups, from = first + pixels[p].place;
    const bool real = from < values;
    copy_async(tile + group * plane + p * 16, dy + (real ? from + 8 * group : 0), real);
  }
}

template <int kKernel, int kTiles>
struct KernelSums {
  static constexpr int kTaps = kKernel * kKernel, kCount = kTaps * kTiles * 2 * 4;
  float v[kTaps][kTiles][2][4];  // [tap, 16 outputs, 8 inputs, of the lane]
};

// Adds the products of 16 pixels of x and dy.
template <int kKernel, int kTiles>
__device__ void multiply_pixels(const RowCut& cut, uint32_t x, uint32_t dy, int dy_plane,
                                KernelSums<kKernel, kTiles>& sums) {
  uint32_t a[kTiles][4];
#pragma unroll
  for (int m = 0; m < kTiles; ++m) load_matrices<true>(a[m], dy + 2 * m * dy_plane);
#pragma unroll
  for (int tap = 0; tap < kKernel * kKernel; ++tap) {
    uint32_t b[4];
    load_matrices<true>(b, x + (tap / kKernel * cut.columns + tap % kKernel) * 16);
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
      mma_16816(sums.v[tap][m][0], a[m], b[0], b[1]);
      mma_16816(sums.v[tap][m][1], a[m], b[2], b[3]);
    }
  }
}

// Adds the sums of the warps with the same channels, in order, to those of the first of them.
template <int kKernel, int kTiles>
__device__ void add_warps(KernelSums<kKernel, kTiles>& sums, int kind, int split, int splits,
                          float* memory) {
  constexpr int kCount = KernelSums<kKernel, kTiles>::kCount;
  float* values = &sums.v[0][0][0][0];
  float* own = memory + kind * kCount * 32 + threadIdx.x % 32;
  for (int s = 1; s < splits; ++s) {
    __syncthreads();
    if (split == s) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) own[i * 32] = values[i];
    }
    __syncthreads();
    if (split == 0) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) values[i] += own[i * 32];
    }
  }
}

template <int kKernel, int kTiles>
__device__ void write_gradient(const RowGradient& g, const KernelSums<kKernel, kTiles>& sums,
                               int client, int piece, int out, int in) {
  const int lane = threadIdx.x % 32;
  float* to =
      g.gradient + (static_cast<int64_t>(piece) * g.forward.clients + client) * g.gradient_client;
#pragma unroll
  for (int tap = 0; tap < kKernel * kKernel; ++tap) {
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
#pragma unroll
      for (int n = 0; n < 2; ++n) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int k = out + 16 * m + 8 * half + lane / 4, c = in + 8 * n + lane % 4 * 2;
          *reinterpret_cast<float2*>(
              to + (tap * g.forward.out.channels + k) * g.forward.in.channels + c) =
              make_float2(sums.v[tap][m][n][2 * half], sums.v[tap][m][n][2 * half + 1]);
        }
      }
    }
  }
}

template <int kKernel, int kChunks, int kOutGroups>
__global__ void __launch_bounds__(kRowThreads, 1)
    gradient_kernel(const __grid_constant__ RowGradient g, const __grid_constant__ RowCut cut) {
  extern __shared__ __align__(128) uint8_t memory[];
  const RowConvolution& c = g.forward;
  constexpr int kTiles = kOutGroups == 2 ? 1 : 2;
  constexpr int kKinds = kChunks * (kOutGroups / (2 * kTiles)), kSplits = kRowWarps / kKinds;
  const int bytes = stage_bytes(g, cut), x_bytes = g.forward.in.channels / 8 * cut.plane;
  int* cells = reinterpret_cast<int*>(memory + 2 * bytes);
  auto* pixels = reinterpret_cast<PixelSource*>(cells + (cut.strips * cut.cells() + 1) / 2 * 2);
  const int piece = blockIdx.x, client = blockIdx.y;
  const int first = static_cast<int>(static_cast<int64_t>(cut.items) * piece / g.pieces);
  const int end = static_cast<int>(static_cast<int64_t>(cut.items) * (piece + 1) / g.pieces);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int kind = warp % kKinds, split = warp / kKinds;
  const int in = kind % kChunks, out = kind / kChunks * kTiles;  // in tiles of 16 channels
  const int dy_plane = plane_of(g, cut);
  find_cells(c, cut, cells);
  find_pixels(c, cut, pixels);
  __syncthreads();
  wait_for_earlier_kernels();
  const auto load = [&](int item) {
    uint8_t* stage = memory + item % 2 * bytes;
    load_tile<2 * kChunks>(c, cut, cells, client, item, stage);
    load_dy<kOutGroups>(g, cut, pixels, client, item, stage + x_bytes);
    commit_copies();
  };
  KernelSums<kKernel, kTiles> sums = {};
  if (first < end) load(first);
  for (int item = first; item < end; ++item) {
    if (item + 1 < end) {
      load(item + 1);
      wait_for_copies<1>();
    } else {
      wait_for_copies<0>();
    }
    __syncthreads();
    const uint32_t x = shared_address(memory) + item % 2 * bytes + (2 * in + lane / 16) * cut.plane;
    const uint32_t dy = shared_address(memory) + item % 2 * bytes + x_bytes +
                        (2 * out + lane / 8 % 2) * dy_plane + (lane / 16 * 8 + lane % 8) * 16;
    for (int p = split * 16; p < whole_pixels(cut); p += kSplits * 16) {
      multiply_pixels(cut, x + pixels[p + lane % 16].cell, dy + p * 16, dy_plane, sums);
    }
    __syncthreads();
  }
  add_warps(sums, kind, split, kSplits, reinterpret_cast<float*>(memory));
  if (split == 0) write_gradient(g, sums, client, piece, 16 * out, 16 * in);
}

template <int kKernel, int kChunks, int kOutGroups>
cudaError_t launch(const RowGradient& g, cudaStream_t stream) {
  const RowCut cut = cut_for(g, shared_memory_limit());
  const int bytes = shared_bytes(g, cut);
  const auto kernel = gradient_kernel<kKernel, kChunks, kOutGroups>;
  const cudaError_t status =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (status != cudaSuccess) return status;
  return launch_dependent(kernel, dim3(g.pieces, g.forward.clients), kRowThreads, bytes, stream, g,
                          cut);
}

template <int kKernel>
cudaError_t launch(const RowGradient& g, cudaStream_t stream) {
  return with_channels(g.forward.in.channels, [&](auto in) {
    return with_channels(g.forward.out.channels, [&](auto out) {
      return launch<kKernel, decltype(in)::value / 16, decltype(out)::value / 8>(g, stream);
    });
  });
}

}  // namespace

cudaError_t differentiate_kernel(Precision precision, const RowGradient& g, cudaStream_t stream) {
  if (precision == Precision::kFloat32) return differentiate_float_kernel(g, stream);
  if (g.forward.wide) return differentiate_wide(g, stream);
  return g.forward.kernel == 1 ? launch<1>(g, stream) : launch<3>(g, stream);
}

int gradient_pieces(int rows) {
  if (rows >= kManyRows) return kMostPieces;
  return std::max(1, rows / kRowsOfPiece);
}

bool kernel_gradient_fits(const RowConvolution& forward, int limit) {
  const RowGradient g{forward};
  return shared_bytes(g, cut_for(g, limit)) <= limit;
}

}  // namespace fedsmooth
