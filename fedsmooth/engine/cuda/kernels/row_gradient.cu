// The gradient of a kernel by products of a warp: a thread block takes the items of a piece one
// after another, the next one's copies under way. A warp holds the sums of all taps for 16 channels
// of x and 16 or 32 of dy; warps that hold the same ones share the pixels out.
#include "fedsmooth/engine/cuda/kernels/row_float.h"
#include "fedsmooth/engine/cuda/kernels/row_tiles.cuh"

namespace fedsmooth {
namespace {

constexpr int kMostPieces = 128, kRowsOfPiece = 8, kFewRows = 256;

RowConvolution forward_of(const RowGradient& g) {
  RowConvolution c;
  c.clients = g.clients;
  c.rows = g.rows;
  c.in = g.in;
  c.out = g.out;
  c.kernel = g.kernel;
  c.stride = g.stride;
  c.padding = g.padding;
  c.x = g.x;
  return c;
}

// Where a pixel of the item is read: x at its first tap, and dy.
struct PixelSource {
  int cell;
  short image, pixel;  // of the item, of the strip; -1: none
};

__host__ __device__ inline int whole_pixels(const RowCut& cut) {
  return (cut.pixels + 15) / 16 * 16;
}
// Bytes of eight channels of dy; cells of one pixel lie in different banks.
__host__ __device__ inline int plane_of(const RowGradient& g, const RowCut& cut) {
  return (whole_pixels(cut) * 16 + 127) / 128 * 128 + 128 / (g.out.channels / 8);
}
__host__ __device__ inline int stage_bytes(const RowGradient& g, const RowCut& cut) {
  return g.in.channels / 8 * cut.plane + g.out.channels / 8 * plane_of(g, cut);
}
inline int shared_bytes(const RowGradient& g, const RowCut& cut) {
  return 2 * stage_bytes(g, cut) + cut.cells() * static_cast<int>(sizeof(CellSource)) +
         whole_pixels(cut) * static_cast<int>(sizeof(PixelSource));
}

inline __device__ void find_pixels(const RowConvolution& c, const RowCut& cut,
                                   PixelSource* pixels) {
  for (int p = threadIdx.x; p < whole_pixels(cut); p += kRowThreads) {
    const int in_strip = cut.strip * c.out.width;
    const bool real = p < cut.pixels;
    pixels[p] = {real ? first_cell(c, cut, p) : 0, static_cast<short>(real ? p / in_strip : -1),
                 static_cast<short>(p % in_strip)};
  }
}

template <int kGroups>
__device__ void load_dy(const RowGradient& g, const RowCut& cut, const PixelSource* pixels,
                        int client, int item, uint8_t* tile) {
  const int row = item / cut.strips * cut.images;
  const int first = item % cut.strips * cut.strip * g.out.width, plane = plane_of(g, cut);
  const bf16* dy = static_cast<const bf16*>(g.dy);
  const int count = whole_pixels(cut) * kGroups;
  for (int i = threadIdx.x; i < count; i += kRowThreads) {
    const int p = i / kGroups, group = i % kGroups;
    const PixelSource source = pixels[p];
    const int pixel = first + source.pixel;
    const bool real = source.image >= 0 && row + source.image < g.rows && pixel < g.out.pixels();
    const int64_t at =
        (static_cast<int64_t>(client) * g.rows + row + source.image) * g.out.pixels() + pixel;
    copy_async(tile + group * plane + p * 16, real ? dy + at * (8 * kGroups) + 8 * group : dy,
               real);
  }
}

template <int kKernel, int kTiles>
struct KernelSums {
  static constexpr int kTaps = kKernel * kKernel, kCount = kTaps * kTiles * 2 * 4;
  float v[kTaps][kTiles][2][4];  // [tap, 16 outputs, 8 inputs, of the lane]
};

// 16 pixels of x and dy.
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

// Sums of the warps that share pixels out, in order, to the first of them.
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
  float* to = g.gradient + (static_cast<int64_t>(piece) * g.clients + client) * g.gradient_client;
#pragma unroll
  for (int tap = 0; tap < kKernel * kKernel; ++tap) {
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
#pragma unroll
      for (int n = 0; n < 2; ++n) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int k = out + 16 * m + 8 * half + lane / 4, c = in + 8 * n + lane % 4 * 2;
          *reinterpret_cast<float2*>(to + (tap * g.out.channels + k) * g.in.channels + c) =
              make_float2(sums.v[tap][m][n][2 * half], sums.v[tap][m][n][2 * half + 1]);
        }
      }
    }
  }
}

template <int kKernel, int kChunks, int kOutGroups>
__global__ void __launch_bounds__(kRowThreads, 1)
    gradient_kernel(RowGradient g, RowConvolution c, RowCut cut) {
  extern __shared__ __align__(128) uint8_t memory[];
  constexpr int kTiles = kOutGroups == 2 ? 1 : 2;
  constexpr int kKinds = kChunks * (kOutGroups / (2 * kTiles)), kSplits = kRowWarps / kKinds;
  const int bytes = stage_bytes(g, cut), x_bytes = g.in.channels / 8 * cut.plane;
  auto* cells = reinterpret_cast<CellSource*>(memory + 2 * bytes);
  auto* pixels = reinterpret_cast<PixelSource*>(cells + cut.cells());
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
  constexpr int kTiles = kOutGroups == 2 ? 1 : 2, kPixels = 512;
  const RowConvolution c = forward_of(g);
  const RowCut cut = choose_cut(c, kPixels, shared_memory_limit(),
                                [&](const RowCut& cut) { return shared_bytes(g, cut); });
  constexpr int kKinds = kChunks * (kOutGroups / (2 * kTiles));
  const int for_sums = KernelSums<kKernel, kTiles>::kCount * 32 * 4 * kKinds;
  const int bytes = std::max(shared_bytes(g, cut), for_sums);
  const auto kernel = gradient_kernel<kKernel, kChunks, kOutGroups>;
  const cudaError_t status =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (status != cudaSuccess) return status;
  kernel<<<dim3(g.pieces, g.clients), kRowThreads, bytes, stream>>>(g, c, cut);
  return cudaGetLastError();
}

template <int kKernel, int kChunks>
cudaError_t launch(const RowGradient& g, cudaStream_t stream) {
  switch (g.out.channels) {
    case 16:
      return launch<kKernel, kChunks, 2>(g, stream);
    case 32:
      return launch<kKernel, kChunks, 4>(g, stream);
    default:
      return launch<kKernel, kChunks, 8>(g, stream);
  }
}

template <int kKernel>
cudaError_t launch(const RowGradient& g, cudaStream_t stream) {
  switch (g.in.channels) {
    case 16:
      return launch<kKernel, 1>(g, stream);
    case 32:
      return launch<kKernel, 2>(g, stream);
    default:
      return launch<kKernel, 4>(g, stream);
  }
}

}  // namespace

cudaError_t differentiate_kernel(Precision precision, const RowGradient& g, cudaStream_t stream) {
  if (precision == Precision::kFloat32) return differentiate_float_kernel(g, stream);
  return g.kernel == 1 ? launch<1>(g, stream) : launch<3>(g, stream);
}

int gradient_pieces(int rows) {
  if (rows > kFewRows) return kMostPieces;
  return std::max(1, rows / kRowsOfPiece);
}

}  // namespace fedsmooth
