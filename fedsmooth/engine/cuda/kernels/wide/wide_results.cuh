// Turns a tile's sums of products, in shared memory, into results of a convolution: adds bias and
// shortcut, applies ReLU and mask, and adds up the sums for a norm.
#pragma once

#include "fedsmooth/engine/cuda/kernels/rows/row_convolution.h"
#include "fedsmooth/engine/cuda/kernels/wave/batched_values.cuh"
#include "fedsmooth/engine/cuda/kernels/wide/wide_tiles.cuh"

namespace fedsmooth::wide {

// Bytes of a tile's sums of products [pixel, pitch], in float32, and of the two sums of each thread
// for eight channels.
template <int kPixels, int kPitch>
constexpr int kResultBytes = (kPixels * kPitch + kThreads * 16) * 4;

// The results of a tile, which has kColumns channels.
struct Results {
  int client = 0, column0 = 0;  // column0: the tile's first channel
  int part = 0, parts = 0;      // index among the tiles of the client's pixels, and their number
  float* values = nullptr;      // [pixel, pitch]
};

// Values of a thread's eight channels.
struct Channels {
  float v[8] = {};
};

template <class Each>
inline __device__ void for_each_channel(const Each& each) {
#pragma unroll
  for (int j = 0; j < 8; ++j) each(j);
}

// The sums over a thread's pixels for each of its channels (RowConvolution::sums), and the norm's
// mean and inverse that the second sum needs.
struct ThreadSums {
  Channels total, products, mean, inverse;

  __device__ ThreadSums(const RowConvolution& c, int client, int channel) {
    if (c.normed == nullptr) return;
    for_each_channel([&](int j) {
      const NormValues& norm = c.values[client * c.values_client + channel + j];
      mean.v[j] = norm.mean;
      inverse.v[j] = norm.inverse;
    });
  }

  __device__ void add(const RowConvolution& c, const Eight<bf16>& y, int64_t at) {
    Channels by;
    for_each_channel([&](int j) { by.v[j] = to_float(y.value[j]); });
    if (c.normed != nullptr) {
      const Eight<bf16> x = load_eight<bf16>(c.normed, at);
      for_each_channel([&](int j) { by.v[j] = (to_float(x.value[j]) - mean.v[j]) * inverse.v[j]; });
    }
    for_each_channel([&](int j) {
      total.v[j] += to_float(y.value[j]);
      products.v[j] += to_float(y.value[j]) * by.v[j];
    });
  }
};

// Returns eight finished results. `from` has their sums of products; 8 `at` is their index in y.
inline __device__ Eight<bf16> finish_eight(const RowConvolution& c, const float* from,
                                           const Channels& bias, int64_t at) {
  Channels value;
  for_each_channel([&](int j) { value.v[j] = from[j] + bias.v[j]; });
  if (c.add != nullptr) {
    const Eight<bf16> add = load_eight<bf16>(c.add, at);
    for_each_channel([&](int j) { value.v[j] += to_float(add.value[j]); });
  }
  if (c.relu) {
    for_each_channel([&](int j) { value.v[j] = value.v[j] < 0.0f ? 0.0f : value.v[j]; });
  }
  if (c.mask != nullptr) {
    const Eight<bf16> mask = load_eight<bf16>(c.mask, at);
    for_each_channel(
        [&](int j) { value.v[j] = to_float(mask.value[j]) > 0.0f ? value.v[j] : 0.0f; });
  }
  Eight<bf16> y;
#pragma unroll
  for (int j = 0; j < 8; j += 2) {
    reinterpret_cast<__nv_bfloat162&>(y.value[j]) =
        __floats2bfloat162_rn(value.v[j], value.v[j + 1]);
  }
  return y;
}

/// Finishes and writes a tile's results. Each thread has eight channels of several pixels. to(i)
/// returns the index of the tile's pixel i among the client's, or -1 if the client has no such
/// pixel. All threads of the block must call this function.
template <int kPixels, int kColumns, int kPitch, class To>
inline __device__ void finish_results(const RowConvolution& c, const Results& r, const To& to) {
  constexpr int kCells = kColumns / 8, kLines = kThreads / kCells;
  const int line = threadIdx.x / kCells, column = threadIdx.x % kCells * 8;
  const bool real = r.column0 + column < c.out.channels;
  const int channel = real ? r.column0 + column : 0;
  Channels bias;
  if (c.bias != nullptr) {
    for_each_channel([&](int j) { bias.v[j] = c.bias[r.client * c.bias_client + channel + j]; });
  }
  ThreadSums sums(c, r.client, channel);
  const int64_t client = static_cast<int64_t>(r.client) * c.rows * c.out.pixels();
#pragma unroll 2
  for (int i = line; i < kPixels; i += kLines) {
    const int pixel = to(i);
    if (!real || pixel < 0) continue;
    const int64_t at = ((client + pixel) * c.out.channels + channel) / 8;
    const Eight<bf16> y = finish_eight(c, r.values + i * kPitch + column, bias, at);
    store_eight(c.y, at, y);
    if (c.sums != nullptr) sums.add(c, y, at);
  }
  if (c.sums == nullptr) return;
  float* of_threads = r.values + kPixels * kPitch;  // [line, 2, column]
  for_each_channel([&](int j) {
    of_threads[(line * 2) * kColumns + column + j] = sums.total.v[j];
    of_threads[(line * 2 + 1) * kColumns + column + j] = sums.products.v[j];
  });
  __syncthreads();
  const int kind = threadIdx.x / kColumns, of = threadIdx.x % kColumns;
  if (kind > 1 || r.column0 + of >= c.out.channels) return;
  float sum = 0.0f;
  for (int i = 0; i < kLines; ++i) sum += of_threads[(i * 2 + kind) * kColumns + of];
  const int64_t part = static_cast<int64_t>(r.client) * r.parts + r.part;
  c.sums[(part * 2 + kind) * c.out.channels + r.column0 + of] = sum;
}

}  // namespace fedsmooth::wide
