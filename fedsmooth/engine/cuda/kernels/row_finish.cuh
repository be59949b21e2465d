// What becomes of a warp's sums of a convolution: bias, shortcut, ReLU, mask, and sums for a norm.
#pragma once

#include "fedsmooth/engine/cuda/kernels/row_tiles.cuh"

namespace fedsmooth {

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

// A pixel's part of the two sums.
template <bool kWide>
__device__ void add_to_sums(const RowConvolution& c, const Pack<kWide>& y, const NormValues* values,
                            int64_t at, float (&total)[Across<kWide>::kOfThread],
                            float (&products)[Across<kWide>::kOfThread]) {
  Pack<kWide> normed = y;
  if (c.normed != nullptr) {
    normed = *reinterpret_cast<const Pack<kWide>*>(static_cast<const bf16*>(c.normed) + at);
  }
#pragma unroll
  for (int j = 0; j < Across<kWide>::kOfThread; ++j) {
    const float2 own = unpack(y.pair[j / 2]), other = unpack(normed.pair[j / 2]);
    const float value = j % 2 == 0 ? own.x : own.y;
    float factor = j % 2 == 0 ? other.x : other.y;
    if (c.normed != nullptr) factor = (factor - values[j].mean) * values[j].inverse;
    total[j] += value;
    products[j] += value * factor;
  }
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
  const NormValues* factors =
      c.values == nullptr ? nullptr : c.values + client * c.values_client + channel;
  float total[kOfThread] = {}, products[kOfThread] = {};
#pragma unroll
  for (int i = 0; i < 2 * kDown; ++i) {
    const int image = at.image[i], pixel = first + at.pixel[i];
    if (image < 0 || row + image >= c.rows || pixel >= c.out.pixels()) continue;
    float v[kOfThread];
#pragma unroll
    for (int j = 0; j < kOfThread; ++j) v[j] = sums.v[i / 2][j / 2][i % 2 * 2 + j % 2];
    const int64_t at_row = static_cast<int64_t>(client) * c.rows + row + image;
    const int64_t place = (at_row * c.out.pixels() + pixel) * c.out.channels + channel;
    const Pack<kWide> out = finish_pixel<kWide>(c, v, bias, place);
    if (c.sums != nullptr) add_to_sums<kWide>(c, out, factors, place, total, products);
  }
  if (c.sums == nullptr) return;
  add_over_pixels(total);
  add_over_pixels(products);
  if (threadIdx.x % 32 < 4) {
#pragma unroll
    for (int j = 0; j < kOfThread; ++j) {
      warp_sums[quad * kOfThread + j] = total[j];
      warp_sums[32 + quad * kOfThread + j] = products[j];
    }
  }
}

}  // namespace fedsmooth
