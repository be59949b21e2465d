// By products of a warp (mma.sync): a thread block takes items one after another, the next one's
// copies under way, with a client's kernel in shared memory. A warp makes 64 pixels x 16 or 32
// channels. Rows of the kernel are permuted so that a thread's sums are neighbouring channels.
#include "fedsmooth/engine/cuda/kernels/row_convolution.h"

#include "fedsmooth/engine/cuda/kernels/row_float.h"
#include "fedsmooth/engine/cuda/kernels/row_norm.h"
#include "fedsmooth/engine/cuda/kernels/row_tiles.cuh"

namespace fedsmooth {
namespace {

constexpr int kDown = 4;  // tiles of 16 pixels of a warp

// kWide: 32 channels of a warp, eight of a thread; else 16 and four.
template <bool kWide>
struct Across {
  static constexpr int kTiles = kWide ? 2 : 1, kChannels = 16 * kTiles, kOfThread = 4 * kTiles;
};

template <bool kWide>
struct alignas(kWide ? 16 : 8) Pack {
  uint32_t pair[Across<kWide>::kOfThread / 2];
};

inline __device__ float2 unpack(uint32_t pair) {
  return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&pair));
}
inline __device__ uint32_t pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

__host__ __device__ inline int kernel_pitch(const RowConvolution& c) {
  return 2 * c.in.channels + 16;  // rows in different banks
}
__host__ __device__ inline int kernel_bytes(const RowConvolution& c) {
  return c.kernel * c.kernel * c.out.channels * kernel_pitch(c);
}

struct Shared {
  uint8_t *kernel, *tiles;
  float* sums;  // [warp, 2, 32]
  CellSource* cells;
};

constexpr int kSumBytes = kRowWarps * 64 * 4;

__host__ __device__ inline int tiles_bytes(const RowConvolution& c, const RowCut& cut) {
  return 2 * c.in.channels / 8 * cut.plane;
}

inline int shared_bytes(const RowConvolution& c, const RowCut& cut) {
  return kernel_bytes(c) + tiles_bytes(c, cut) + kSumBytes +
         cut.cells() * static_cast<int>(sizeof(CellSource));
}

template <bool kWide>
__device__ void load_kernel(const RowConvolution& c, int client, uint8_t* to) {
  constexpr int kChannels = Across<kWide>::kChannels, kOfThread = Across<kWide>::kOfThread;
  const bf16* from = static_cast<const bf16*>(c.weights) + client * c.weights_client;
  const int eights = c.in.channels / 8, count = c.kernel * c.kernel * c.out.channels * eights;
  for (int i = threadIdx.x; i < count; i += kRowThreads) {
    const int row = i / eights, k = row % kChannels;
    const int permuted = k % kOfThread / 2 * 8 + k / kOfThread * 2 + k % 2;
    copy_async(to + (row - k + permuted) * kernel_pitch(c) + i % eights * 16, from + i * 8, true);
  }
}

// Where a thread's pixels lie: eight of them, two to a tile.
struct ThreadPixels {
  int cell[kDown];         // of the pixel whose channels the lane loads
  short image[2 * kDown];  // of the item, for its sums; -1: none
  short pixel[2 * kDown];  // of the strip
};

// A warp's sums of an item.
template <bool kWide>
struct WarpSums {
  float v[kDown][2 * Across<kWide>::kTiles][4];
};

template <int kKernel, int kChunks, bool kWide>
__device__ void multiply_tile(const RowCut& cut, const ThreadPixels& at, uint32_t tile,
                              uint32_t kernel, int tap_bytes, WarpSums<kWide>& sums) {
  constexpr int kTiles = Across<kWide>::kTiles, kPitch = 32 * kChunks + 16;
#pragma unroll
  for (int m = 0; m < kDown; ++m) {
#pragma unroll
    for (int n = 0; n < 2 * kTiles; ++n) {
      sums.v[m][n][0] = sums.v[m][n][1] = sums.v[m][n][2] = sums.v[m][n][3] = 0.0f;
    }
  }
#pragma unroll
  for (int chunk = 0; chunk < kChunks; ++chunk) {
#pragma unroll
    for (int tap = 0; tap < kKernel * kKernel; ++tap) {
      const uint32_t shift =
          chunk * 2 * cut.plane + (tap / kKernel * cut.columns + tap % kKernel) * 16;
      uint32_t b[kTiles][4];
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
        load_matrices<false>(b[n], kernel + tap * tap_bytes + n * 16 * kPitch + chunk * 32);
      }
#pragma unroll
      for (int m = 0; m < kDown; ++m) {
        uint32_t a[4];
        load_matrices<false>(a, tile + at.cell[m] + shift);
#pragma unroll
        for (int n = 0; n < kTiles; ++n) {
          mma_16816(sums.v[m][2 * n], a, b[n][0], b[n][1]);
          mma_16816(sums.v[m][2 * n + 1], a, b[n][2], b[n][3]);
        }
      }
    }
  }
}

// Writes a pixel's channels. Returns them as they were rounded.
template <bool kWide>
__device__ Pack<kWide> finish_pixel(const RowConvolution& c, float (&v)[Across<kWide>::kOfThread],
                                    const float* bias, int64_t at) {
  constexpr int kPairs = Across<kWide>::kOfThread / 2;
  using Values = Pack<kWide>;
  if (bias != nullptr) {
#pragma unroll
    for (int i = 0; i < 2 * kPairs; ++i) v[i] += __ldg(bias + i);
  }
  const auto read = [&](const void* map) {
    return *reinterpret_cast<const Values*>(static_cast<const bf16*>(map) + at);
  };
  if (c.add != nullptr) {
    const Values add = read(c.add);
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      const float2 pair = unpack(add.pair[i]);
      v[2 * i] += pair.x;
      v[2 * i + 1] += pair.y;
    }
  }
  if (c.relu) {
#pragma unroll
    for (int i = 0; i < 2 * kPairs; ++i) v[i] = v[i] > 0.0f ? v[i] : v[i] != v[i] ? v[i] : 0.0f;
  }
  if (c.mask != nullptr) {
    const Values mask = read(c.mask);
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      const float2 pair = unpack(mask.pair[i]);
      if (!(pair.x > 0.0f)) v[2 * i] = 0.0f;
      if (!(pair.y > 0.0f)) v[2 * i + 1] = 0.0f;
    }
  }
  Values out;
#pragma unroll
  for (int i = 0; i < kPairs; ++i) out.pair[i] = pack(v[2 * i], v[2 * i + 1]);
  *reinterpret_cast<Values*>(static_cast<bf16*>(c.y) + at) = out;
  return out;
}

// Adds up over the lanes that hold the same channels; those of the first pixel know the sum.
template <int kCount>
__device__ void add_over_pixels(float (&v)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
#pragma unroll
    for (int distance = 4; distance < 32; distance *= 2) {
      v[i] += __shfl_xor_sync(~0u, v[i], distance);
    }
  }
}

// Writes an item's pixels; its sums over the warp's pixels go to `warp_sums` [2, 32].
template <bool kWide>
__device__ void finish_item(const RowConvolution& c, const RowCut& cut, const ThreadPixels& at,
                            int client, int item, int channel, const WarpSums<kWide>& sums,
                            float* warp_sums) {
  constexpr int kOfThread = Across<kWide>::kOfThread;
  const int row = item / cut.strips * cut.images, quad = threadIdx.x % 4;
  const int first = item % cut.strips * cut.strip * c.out.width;
  const float* bias = c.bias == nullptr ? nullptr : c.bias + client * c.bias_client + channel;
  float total[kOfThread] = {}, squares[kOfThread] = {};
#pragma unroll
  for (int i = 0; i < 2 * kDown; ++i) {
    const int image = at.image[i], pixel = first + at.pixel[i];
    if (image < 0 || row + image >= c.rows || pixel >= c.out.pixels()) continue;
    float v[kOfThread];
#pragma unroll
    for (int j = 0; j < kOfThread; ++j) v[j] = sums.v[i / 2][j / 2][i % 2 * 2 + j % 2];
    const int64_t at_row = static_cast<int64_t>(client) * c.rows + row + image;
    const Pack<kWide> out = finish_pixel<kWide>(
        c, v, bias, (at_row * c.out.pixels() + pixel) * c.out.channels + channel);
    if (c.sums == nullptr) continue;
#pragma unroll
    for (int j = 0; j < kOfThread; ++j) {
      const float2 pair = unpack(out.pair[j / 2]);
      const float value = j % 2 == 0 ? pair.x : pair.y;
      total[j] += value;
      squares[j] += value * value;
    }
  }
  if (c.sums == nullptr) return;
  add_over_pixels(total);
  add_over_pixels(squares);
  if (threadIdx.x % 32 < 4) {
#pragma unroll
    for (int j = 0; j < kOfThread; ++j) {
      warp_sums[quad * kOfThread + j] = total[j];
      warp_sums[32 + quad * kOfThread + j] = squares[j];
    }
  }
}

// Over the warps that share channels, in order.
template <bool kWide>
__device__ void write_sums(const RowConvolution& c, const RowCut& cut, int client, int item,
                           int warps_across, const float* sums) {
  constexpr int kChannels = Across<kWide>::kChannels;
  for (int i = threadIdx.x; i < 2 * c.out.channels; i += kRowThreads) {
    const int k = i % c.out.channels, kind = i / c.out.channels;
    float sum = 0.0f;
    for (int warp = k / kChannels; warp < kRowWarps; warp += warps_across) {
      sum += sums[warp * 64 + kind * 32 + k % kChannels];
    }
    c.sums[(static_cast<int64_t>(client) * cut.items + item) * 2 * c.out.channels + i] = sum;
  }
}

template <int kKernel, int kChunks, bool kWide>
__global__ void __launch_bounds__(kRowThreads, 2) convolve_kernel(RowConvolution c, RowCut cut) {
  extern __shared__ __align__(128) uint8_t memory[];
  constexpr int kChannels = Across<kWide>::kChannels, kOfThread = Across<kWide>::kOfThread;
  const int tile_bytes = tiles_bytes(c, cut) / 2;
  const Shared shared{
      memory + kSumBytes, memory + kSumBytes + kernel_bytes(c), reinterpret_cast<float*>(memory),
      reinterpret_cast<CellSource*>(memory + kSumBytes + kernel_bytes(c) + 2 * tile_bytes)};
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int warps_across = c.out.channels / kChannels, column = warp % warps_across;
  const int pixel0 = warp / warps_across * kDown * 16;
  find_cells(c, cut, shared.cells);
  ThreadPixels at;
#pragma unroll
  for (int m = 0; m < kDown; ++m) {
    const int loaded = min(pixel0 + m * 16 + lane % 16, cut.pixels - 1);
    at.cell[m] = first_cell(c, cut, loaded) + lane / 16 * cut.plane;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int own = pixel0 + m * 16 + half * 8 + lane / 4, in_strip = cut.strip * c.out.width;
      at.image[2 * m + half] = static_cast<short>(own < cut.pixels ? own / in_strip : -1);
      at.pixel[2 * m + half] = static_cast<short>(own % in_strip);
    }
  }
  const uint32_t kernel = shared_address(shared.kernel) +
                          (column * kChannels + lane / 16 * 8 + lane % 8) * kernel_pitch(c) +
                          lane / 8 % 2 * 16;
  __syncthreads();

  const int64_t all = static_cast<int64_t>(c.clients) * cut.items;
  const int first = static_cast<int>(all * blockIdx.x / gridDim.x);
  const int end = static_cast<int>(all * (blockIdx.x + 1) / gridDim.x);
  const auto load = [&](int i) {
    load_tile<2 * kChunks>(c, cut, shared.cells, i / cut.items, i % cut.items,
                           shared.tiles + i % 2 * tile_bytes);
    commit_copies();
  };
  if (first < end) load(first);
  for (int i = first; i < end; ++i) {
    const int client = i / cut.items, item = i % cut.items;
    if (i == first || item == 0) {
      load_kernel<kWide>(c, client, shared.kernel);
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
    if (pixel0 < cut.pixels) {
      WarpSums<kWide> sums;
      multiply_tile<kKernel, kChunks, kWide>(cut, at,
                                             shared_address(shared.tiles) + i % 2 * tile_bytes,
                                             kernel, c.out.channels * kernel_pitch(c), sums);
      finish_item<kWide>(c, cut, at, client, item, column * kChannels + lane % 4 * kOfThread, sums,
                         shared.sums + warp * 64);
    } else if (c.sums != nullptr) {
      shared.sums[warp * 64 + lane] = shared.sums[warp * 64 + 32 + lane] = 0.0f;
    }
    __syncthreads();
    // Read before the next item's sums: those come after the next barrier.
    if (c.sums != nullptr) write_sums<kWide>(c, cut, client, item, warps_across, shared.sums);
  }
}

RowCut cut_for(const RowConvolution& c) {
  const int across = c.out.channels == 16 ? 1 : c.out.channels / 32;
  const int pixels = kRowWarps / across * kDown * 16;
  const auto bytes = [&](const RowCut& cut) { return shared_bytes(c, cut); };
  const int limit = shared_memory_limit();
  // Two blocks of a multiprocessor hide each other's waits, if both have work.
  const RowCut two = choose_cut(c, pixels, (limit - 1024) / 2, bytes);
  const RowCut one = choose_cut(c, pixels, limit, bytes);
  return 2 * two.pixels >= one.pixels ? two : one;
}

template <int kKernel, int kChunks, bool kWide>
cudaError_t launch(const RowConvolution& c, cudaStream_t stream) {
  const RowCut cut = cut_for(c);
  const int bytes = shared_bytes(c, cut);
  const auto kernel = convolve_kernel<kKernel, kChunks, kWide>;
  const cudaError_t status =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (status != cudaSuccess) return status;
  const int64_t items = int64_t{c.clients} * cut.items;
  const int resident = bytes * 2 + 2048 <= shared_memory_limit() + 1024 ? 2 : 1;
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(items, multiprocessors() * resident));
  kernel<<<blocks, kRowThreads, bytes, stream>>>(c, cut);
  return cudaGetLastError();
}

template <int kKernel, int kChunks>
cudaError_t launch(const RowConvolution& c, cudaStream_t stream) {
  return c.out.channels == 16 ? launch<kKernel, kChunks, false>(c, stream)
                              : launch<kKernel, kChunks, true>(c, stream);
}

template <int kKernel>
cudaError_t launch(const RowConvolution& c, cudaStream_t stream) {
  switch (c.in.channels) {
    case 16:
      return launch<kKernel, 1>(c, stream);
    case 32:
      return launch<kKernel, 2>(c, stream);
    default:
      return launch<kKernel, 4>(c, stream);
  }
}

}  // namespace

cudaError_t convolve_rows(Precision precision, const RowConvolution& c, cudaStream_t stream) {
  if (precision == Precision::kFloat32) return convolve_float_rows(c, stream);
  return c.kernel == 1 ? launch<1>(c, stream) : launch<3>(c, stream);
}

int convolution_parts(Precision precision, const RowConvolution& c) {
  if (precision == Precision::kFloat32) return map_parts(c.rows, c.out);
  return cut_for(c).items;
}

}  // namespace fedsmooth
