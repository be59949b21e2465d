// Writes the sums of hopper_wide.cu, with bias and ReLU, as they are or as maxima over squares of
// pixels.
#pragma once

#include "fedsmooth/engine/cuda/kernels/pairs/hopper_maps.cuh"

namespace fedsmooth {

// Two warpgroups compute two results of a square each.
constexpr int kReaders = 2;
constexpr int kOutTile = 64 * kMapPitch, kOutBytes = kReaders * kOutTile * 2;

// A warpgroup's sums: of two results, columns in tiles of 64.
template <int kTiles>
using WideSums = float[2][kTiles][32];

// Returns the results of a square that a warpgroup computes: two diagonal ones, so that both
// warpgroups have about the same work at any tap.
inline __device__ int result_of(int reader, int own) { return own == 0 ? reader : 3 - reader; }

inline __device__ void sync_readers() { asm volatile("bar.sync 3, 256;" ::: "memory"); }

// Returns the i-th pair of a thread's neighbouring values, with bias and ReLU, rounded. It does not
// matter whether ReLU comes before or after rounding; NaN stays.
inline __device__ uint32_t finish_pair(const float (&sums)[32], int i, float2 bias) {
  uint32_t pair = 0;
  asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;"
      : "=r"(pair)
      : "f"(sums[2 * i + 1] + bias.y), "f"(sums[2 * i] + bias.x));
  return pair;
}

// Writes a warpgroup's 64 x 64 values to its tile; pair(i, bias) returns a thread's i-th pair.
template <class Pair>
inline __device__ void fill_tile(const float* bias, bf16* tile, const Pair& pair) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  bias += lane % 4 * 2;
  // Each lane gives the address of a row of one of four 8x8 matrices.
  const uint32_t to = shared_address(tile + (16 * warp + lane % 16) * kMapPitch + lane / 16 * 8);
#pragma unroll
  for (int i = 0; i < 16; i += 4) {
    const float2 b = __ldg(reinterpret_cast<const float2*>(bias + i * 4));
    const float2 next = __ldg(reinterpret_cast<const float2*>(bias + i * 4 + 8));
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to + i * 8),
        "r"(pair(i, b)), "r"(pair(i + 1, b)), "r"(pair(i + 2, next)), "r"(pair(i + 3, next))
        : "memory");
  }
}

// Writes a warpgroup's result from its tile.
inline __device__ void write_result(const MapProduct& p, const Place& place, int result,
                                    const bf16* tile) {
  const int row = threadIdx.x % 128 / 8, column = threadIdx.x % 8 * 8;
  uint4* to =
      static_cast<uint4*>(p.out) + (position_of(p, place, result) + row * p.columns + column) / 8;
  const uint4* from = reinterpret_cast<const uint4*>(tile + row * kMapPitch + column);
#pragma unroll
  for (int i = 0; i < 4; ++i) to[i * 2 * p.columns] = from[i * 2 * kMapPitch];
}

// Writes the maxima of a square, from both warpgroups' maxima.
inline __device__ void write_square(const MapProduct& p, const Place& place, const bf16* tiles) {
  const int row = threadIdx.x / 8, column = threadIdx.x % 8 * 8;
  const int64_t square = static_cast<int64_t>(place.client) * (p.pairs.results / 4) + place.group;
  const int64_t at = (square * p.rows + place.row0 + row) * p.columns + place.column0 + column;
  uint4* to = static_cast<uint4*>(p.out) + at / 8;
  const uint4* from = reinterpret_cast<const uint4*>(tiles + row * kMapPitch + column);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint4 a = from[i * 4 * kMapPitch], b = from[i * 4 * kMapPitch + kOutTile / 8];
    to[i * 4 * p.columns] =
        make_uint4(larger(a.x, b.x), larger(a.y, b.y), larger(a.z, b.z), larger(a.w, b.w));
  }
}

// Writes a warpgroup's sums through its tile in shared memory.
template <int kTiles>
inline __device__ void write_part(const MapProduct& p, Place place, int reader,
                                  const WideSums<kTiles>& sums, bf16* tiles) {
  const float* bias = p.bias + place.client * p.bias_client;
  bf16* tile = tiles + reader * kOutTile;
#pragma unroll
  for (int t = 0; t < kTiles; ++t) {
    if (p.pool_columns > 0) {
      fill_tile(bias + place.column0, tile, [&](int i, float2 b) {
        return larger(finish_pair(sums[0][t], i, b), finish_pair(sums[1][t], i, b));
      });
      sync_readers();
      write_square(p, place, tiles);
      sync_readers();
    } else {
#pragma unroll
      for (int own = 0; own < 2; ++own) {
        fill_tile(bias + place.column0, tile,
                  [&](int i, float2 b) { return finish_pair(sums[own][t], i, b); });
        sync_warpgroup(reader);
        write_result(p, place, p.pairs.order[place.group * 4 + result_of(reader, own)], tile);
        sync_warpgroup(reader);
      }
    }
    place.column0 += 64;
  }
}

}  // namespace fedsmooth
