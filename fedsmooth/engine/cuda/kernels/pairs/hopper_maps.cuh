// Writes finished tiles of a map from a thread block on Hopper: as they are, as maxima over squares
// of pixels, or, for gradients with respect to such maxima, spread over the squares.
#pragma once

#include "fedsmooth/engine/cuda/kernels/pairs/hopper_sums.cuh"
#include "fedsmooth/engine/cuda/kernels/wave/batched_values.cuh"

namespace fedsmooth {

constexpr int kMapPitch = 64 + kPad;  // values between rows of a finished tile in shared memory

struct alignas(8) Choices {
  uint8_t value[8];
};

// Returns the offset of a block's first value of a result in the map of results.
inline __device__ int64_t position_of(const MapProduct& p, const Place& place, int result) {
  const int64_t pixel = static_cast<int64_t>(place.client) * p.pairs.results + result;
  return (pixel * p.rows + place.row0) * p.columns + place.column0;
}

// Adds the bias, applies ReLU, and writes a tile to shared memory or, if the result is in float32,
// to the map.
inline __device__ void finish_tile(const MapProduct& p, const Place& place, int result,
                                   const float (&sums)[32], bf16* tile) {
  const float* bias = p.bias + place.client * p.bias_client + place.column0;
  const int64_t at = position_of(p, place, result);
  each_pair(sums, [&](int row, int column, float a, float b) {
    if (place.column0 + column >= p.columns) return;
    if (p.bias != nullptr) {
      a += bias[column];
      b += bias[column + 1];
    }
    if (p.relu) {
      a = a < 0.0f ? 0.0f : a;
      b = b < 0.0f ? 0.0f : b;
    }
    if (p.out_float != nullptr) {
      *reinterpret_cast<float2*>(p.out_float + at + row * p.columns + column) = make_float2(a, b);
    } else {
      *reinterpret_cast<__nv_bfloat162*>(tile + row * kMapPitch + column) =
          __floats2bfloat162_rn(a, b);
    }
  });
}

// Calls each(slot, row, column) for eight columns at a time of `tiles` tiles. The threads of the
// block share the calls out.
template <class S, class Each>
inline __device__ void each_eight(const MapProduct& p, const Place& place, int tiles,
                                  const Each& each) {
  for (int i = threadIdx.x; i < tiles * 512; i += S::kWarpgroups * 128) {
    const int column = i % 8 * 8;
    if (place.column0 + column < p.columns) each(i / 512, i / 8 % 64, column);
  }
}

// Writes `count` tiles to the map; values where `mask` is not positive are zero.
template <class S>
inline __device__ void write_map(const MapProduct& p, const Place& place, int count,
                                 const bf16* tiles) {
  each_eight<S>(p, place, count, [&](int slot, int row, int column) {
    const int result = p.pairs.order[place.group * S::kGroup + slot];
    const int64_t at = (position_of(p, place, result) + row * p.columns + column) / 8;
    Eight<bf16> values = load_eight<bf16>(tiles, ((slot * 64 + row) * kMapPitch + column) / 8);
    if (p.mask != nullptr) {
      const Eight<bf16> mask = load_eight<bf16>(p.mask, at);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        if (!(to_float(mask.value[j]) > 0.0f)) values.value[j] = __float2bfloat16(0.0f);
      }
    }
    store_eight(p.out, at, values);
  });
}

// Writes each square's values to the pixel that was chosen, and zeros to its other pixels.
template <class S>
inline __device__ void write_squares(const MapProduct& p, const Place& place, int count,
                                     const bf16* tiles) {
  each_eight<S>(p, place, count, [&](int slot, int row, int column) {
    const int square = p.pairs.order[place.group * S::kGroup + slot];
    const Choices choices = reinterpret_cast<const Choices*>(
        p.choice)[(position_of(p, place, square) + row * p.columns + column) / 8];
    const Eight<bf16> values =
        load_eight<bf16>(tiles, ((slot * 64 + row) * kMapPitch + column) / 8);
    const int64_t client = static_cast<int64_t>(place.client) * p.pairs.results * 4;
    const int y = square / p.pool_columns * 2, x = square % p.pool_columns * 2;
#pragma unroll
    for (int pixel = 0; pixel < 4; ++pixel) {
      Eight<bf16> out;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        out.value[j] = choices.value[j] == pixel ? values.value[j] : __float2bfloat16(0.0f);
      }
      const int64_t to = client + (y + pixel / 2) * p.pool_columns * 2 + x + pixel % 2;
      store_eight(p.out,
                  ((to * p.rows + place.row0 + row) * p.columns + place.column0 + column) / 8, out);
    }
  });
}

// Writes the maximum of each four consecutive tiles, and which is the first that has it. NaN wins,
// and passes no gradient on.
template <class S>
inline __device__ void write_maxima(const MapProduct& p, const Place& place, int count,
                                    const bf16* tiles) {
  each_eight<S>(p, place, count / 4, [&](int slot, int row, int column) {
    const int square = place.group * (S::kGroup / 4) + slot;
    const int64_t client = static_cast<int64_t>(place.client) * (p.pairs.results / 4);
    const int64_t at =
        (((client + square) * p.rows + place.row0 + row) * p.columns + place.column0 + column) / 8;
    const int first = (slot * 4 * 64 + row) * kMapPitch + column;
    Eight<bf16> largest = load_eight<bf16>(tiles, first / 8);
    Choices choices = {};
#pragma unroll
    for (int pixel = 1; pixel < 4; ++pixel) {
      const Eight<bf16> other = load_eight<bf16>(tiles, (first + pixel * 64 * kMapPitch) / 8);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const float a = to_float(largest.value[j]), b = to_float(other.value[j]);
        if (a >= b || a != a) continue;
        largest.value[j] = other.value[j];
        choices.value[j] = static_cast<uint8_t>(pixel);
      }
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float value = to_float(largest.value[j]);
      if (value != value || (p.relu && !(value > 0.0f))) choices.value[j] = kNoChoice;
    }
    store_eight(p.out, at, largest);
    if (p.choice != nullptr) reinterpret_cast<Choices*>(p.choice)[at] = choices;
  });
}

}  // namespace fedsmooth
