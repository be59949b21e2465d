// Finishes a warp's sums of a convolution: bias, shortcut, ReLU, mask, and sums for a norm.
#pragma once

#include "fedsmooth/engine/cuda/kernels/rows/row_tiles.cuh"

namespace fedsmooth {

constexpr int kDown = 4;  // a warp computes four tiles of 16 pixels

// The pixels of a warp's four tiles. kAny: consecutive pixels. kStacked: lines below each other.
// kHalved: the four combinations of even and odd y and x, for a halved cut.
enum class Layout { kAny, kStacked, kHalved };

// kWide: a warp has 32 channels, a thread eight of them; else 16 and four.
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

// ReLU that keeps NaN.
inline __device__ float relu(float v) {
  float positive;
  asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(positive) : "f"(v));
  return positive;
}

// A pixel of an item.
struct ItemPixel {
  int image, y, x;

  // Returns pixel j of tile m of a warp.
  template <Layout kLayout>
  static __device__ ItemPixel find(const RowCut& cut, int width, int warp, int m, int j) {
    if constexpr (kLayout == Layout::kHalved) {
      const int line = warp * (width == 32 ? 2 : 4) + (width == 32 ? 0 : j / 8 * 2);
      return {line / cut.strip, line % cut.strip + m / 2, j % (width / 2) * 2 + m % 2};
    } else if constexpr (kLayout == Layout::kAny) {
      const int p = (warp * kDown + m) * 16 + j;
      return {p / (cut.strip * width), p / width % cut.strip, p % width};
    } else if (width == 8) {
      const int stacks = cut.strip / kDown;
      return {warp / stacks * 2 + j / 8, warp % stacks * kDown + m, j % 8};
    } else {
      const int across = width / 16, line = warp / across * kDown;
      return {line / cut.strip, line % cut.strip + m, warp % across * 16 + j};
    }
  }
};

// Offsets of a thread's eight pixels, two of each tile. Unless the layout is kAny, they are stored
// for the first tile only: the other tiles are below it, or beside and below it.
template <Layout kLayout>
struct ThreadPixels {
  static constexpr int kTiles = kLayout == Layout::kAny ? kDown : 1;
  bool any;               // whether the warp has any pixel
  int cell[kTiles];       // offset in x's tile of the pixel whose channels the lane loads
  int place[2 * kTiles];  // offset of a pixel in the map, from the item's beginning; kNoPlace: none
  int below, beside;      // from a pixel to the next one, if not kAny

  __device__ ThreadPixels(const RowConvolution& c, const RowCut& cut, int warp, int channel) {
    const int lane = threadIdx.x % 32;
    any = ItemPixel::find<kLayout>(cut, c.out.width, warp, 0, 0).image < cut.images;
    below = c.out.width * c.out.channels;
    beside = c.out.channels;
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
      const auto read = ItemPixel::find<kLayout>(cut, c.out.width, warp, m, lane % 16);
      const int image = min(read.image, cut.images - 1);
      const int y = kLayout == Layout::kHalved ? read.y / 2 : read.y * c.stride;
      const int x = kLayout == Layout::kHalved ? read.x / 2 : read.x * c.stride;
      cell[m] = ((image * cut.lines + y) * cut.columns + x) * 16 + lane / 16 * cut.plane;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const auto own = ItemPixel::find<kLayout>(cut, c.out.width, warp, m, half * 8 + lane / 4);
        const int pixel = own.image * c.out.pixels() + own.y * c.out.width + own.x;
        place[2 * m + half] = own.image < cut.images ? pixel * c.out.channels + channel : kNoPlace;
      }
    }
  }

  __device__ int place_of(int i) const {
    if constexpr (kLayout == Layout::kAny) return place[i];
    if constexpr (kLayout == Layout::kStacked) return place[i % 2] + i / 2 * below;
    return place[i % 2] + i / 4 * below + i / 2 % 2 * beside;
  }
};

// A thread's part of a warp's sums of an item: [tile, 8 channels, two pixels x two channels].
template <bool kWide>
struct WarpSums {
  float v[kDown][2 * Across<kWide>::kTiles][4];

  // Begins with the bias of the thread's channels.
  __device__ WarpSums(const RowConvolution& c, int client, int channel) {
    const float* bias = c.bias + client * c.bias_client + channel;
#pragma unroll
    for (int n = 0; n < 2 * Across<kWide>::kTiles; ++n) {
      const float low = c.bias == nullptr ? 0.0f : __ldg(bias + 2 * n);
      const float high = c.bias == nullptr ? 0.0f : __ldg(bias + 2 * n + 1);
#pragma unroll
      for (int m = 0; m < kDown; ++m) {
        v[m][n][0] = v[m][n][2] = low;
        v[m][n][1] = v[m][n][3] = high;
      }
    }
  }
};

// The inputs that are added, masked by or summed with for a pixel; zeros where there are none.
template <bool kWide>
struct PixelInputs {
  Pack<kWide> add = {}, mask = {}, normed = {};

  __device__ void load(const RowConvolution& c, int64_t at) {
    const auto read = [&](const void* map) {
      return *reinterpret_cast<const Pack<kWide>*>(static_cast<const bf16*>(map) + at);
    };
    if (c.add != nullptr) add = read(c.add);
    if (c.mask != nullptr) mask = read(c.mask);
    if (c.normed != nullptr) normed = read(c.normed);
  }
};

// Prefetches into the cache what finish_item() will read.
inline __device__ void prefetch_inputs(const RowConvolution& c, const RowCut& cut, int client,
                                       int item) {
  constexpr int kLine = 64;  // values
  const int row = item / cut.strips * cut.images;
  const int first = item % cut.strips * cut.strip * c.out.width * c.out.channels;
  const int end = min(first + cut.pixels * c.out.channels, values_of_item(cut, c.rows, row, c.out));
  const int64_t base = (static_cast<int64_t>(client) * c.rows + row) * c.out.row_size();
  const auto ask = [&](const void* map) {
    if (map == nullptr) return;
    for (int v = first + threadIdx.x * kLine; v < end; v += kRowThreads * kLine) {
      asm volatile("prefetch.global.L2 [%0];" ::"l"(static_cast<const bf16*>(map) + base + v));
    }
  };
  ask(c.add);
  ask(c.mask);
  ask(c.normed);
}

// Returns a pixel's channels as they are written.
template <bool kWide>
__device__ Pack<kWide> finish_pixel(const RowConvolution& c, const PixelInputs<kWide>& in,
                                    float (&v)[Across<kWide>::kOfThread]) {
  Pack<kWide> out;
#pragma unroll
  for (int i = 0; i < Across<kWide>::kOfThread / 2; ++i) {
    const float2 add = unpack(in.add.pair[i]);
    float low = v[2 * i] + add.x, high = v[2 * i + 1] + add.y;
    if (c.relu) {
      low = relu(low);
      high = relu(high);
    }
    out.pair[i] = pack(low, high);
    if (c.mask != nullptr) {
      const auto mask = *reinterpret_cast<const __nv_bfloat162*>(&in.mask.pair[i]);
      out.pair[i] &= __hgt2_mask(mask, __float2bfloat162_rn(0.0f));
    }
  }
  return out;
}

// Adds a pixel to the sums of y, and of its squares or of y times `normed`.
template <bool kWide>
__device__ void add_to_sums(const RowConvolution& c, const Pack<kWide>& y,
                            const Pack<kWide>& normed, float (&total)[Across<kWide>::kOfThread],
                            float (&products)[Across<kWide>::kOfThread]) {
#pragma unroll
  for (int i = 0; i < Across<kWide>::kOfThread / 2; ++i) {
    const float2 value = unpack(y.pair[i]);
    const float2 factor = unpack(c.normed == nullptr ? y.pair[i] : normed.pair[i]);
    total[2 * i] += value.x;
    total[2 * i + 1] += value.y;
    products[2 * i] += value.x * factor.x;
    products[2 * i + 1] += value.y * factor.y;
  }
}

// Adds up over the lanes with the same channels; all of them get the sum.
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

// Calls write(pixel, at, y, inputs) for each real one of a thread's eight pixels, where y has its
// channels as they are written, and `at` is their offset in the map. The inputs of a few pixels are
// read at the same time.
template <bool kWide, Layout kLayout, class Write>
__device__ void finish_pixels(const RowConvolution& c, const RowCut& cut,
                              const ThreadPixels<kLayout>& at, int client, int item,
                              const WarpSums<kWide>& sums, const Write& write) {
  constexpr int kOfThread = Across<kWide>::kOfThread, kTogether = kWide ? 2 : 4;
  const int row = item / cut.strips * cut.images;
  const int first = item % cut.strips * cut.strip * c.out.width * c.out.channels;
  const int values = values_of_item(cut, c.rows, row, c.out);
  const int64_t base = (static_cast<int64_t>(client) * c.rows + row) * c.out.row_size() + first;
#pragma unroll
  for (int begin = 0; begin < 2 * kDown; begin += kTogether) {
    PixelInputs<kWide> in[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const int place = at.place_of(begin + i);
      if (first + place < values) in[i].load(c, base + place);
    }
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const int pixel = begin + i, place = at.place_of(pixel);
      if (first + place >= values) continue;
      float v[kOfThread];
#pragma unroll
      for (int j = 0; j < kOfThread; ++j) {
        v[j] = sums.v[pixel / 2][j / 2][pixel % 2 * 2 + j % 2];
      }
      write(pixel, base + place, finish_pixel<kWide>(c, in[i], v), in[i]);
    }
  }
}

template <bool kWide>
__device__ void write_pixel(void* map, int64_t at, const Pack<kWide>& y) {
  *reinterpret_cast<Pack<kWide>*>(static_cast<bf16*>(map) + at) = y;
}

// Writes an item's pixels, and the sums over the warp's pixels to `warp_sums` [2, 32].
template <bool kWide, Layout kLayout>
__device__ void finish_item(const RowConvolution& c, const RowCut& cut,
                            const ThreadPixels<kLayout>& at, int client, int item,
                            const WarpSums<kWide>& sums, float* warp_sums) {
  constexpr int kOfThread = Across<kWide>::kOfThread;
  float total[kOfThread] = {}, products[kOfThread] = {};
  finish_pixels<kWide>(c, cut, at, client, item, sums,
                       [&](int, int64_t to, const Pack<kWide>& y, const PixelInputs<kWide>& in) {
                         write_pixel<kWide>(c.y, to, y);
                         if (c.sums != nullptr) {
                           add_to_sums<kWide>(c, y, in.normed, total, products);
                         }
                       });
  if (c.sums == nullptr) return;
  add_over_pixels(total);
  add_over_pixels(products);
  const int quad = threadIdx.x % 4;
  if (threadIdx.x % 32 < 4) {
#pragma unroll
    for (int j = 0; j < kOfThread; ++j) {
      warp_sums[quad * kOfThread + j] = total[j];
      warp_sums[32 + quad * kOfThread + j] = products[j];
    }
  }
}

}  // namespace fedsmooth
