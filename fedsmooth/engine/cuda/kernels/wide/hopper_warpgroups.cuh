// Products by warpgroups, on Hopper: see wide_tiles.cuh.
#pragma once

#include "fedsmooth/engine/cuda/kernels/tensor_cores/hopper_tiles.cuh"
#include "fedsmooth/engine/cuda/kernels/wide/wide_tiles.cuh"

namespace fedsmooth::wide {

/// A call adds a stage's products while the thread continues. They are done after the next
/// before_barrier() or finish().
struct ByWarpgroups {
  /// Every thread calls this before the barrier after which its copies are multiplied and the tiles
  /// of earlier products are overwritten.
  static __device__ void before_barrier() {
    show_to_products();
    wait_for_products<0>();
  }
  static __device__ void finish() { wait_for_products<0>(); }

  template <int kTiles>
  static __device__ void multiply(Sums<kTiles>& sums, uint32_t a, uint32_t b) {
    const uint64_t left = describe_tile<kRowBytes>(uniform(a)),
                   right = describe_tile<kRowBytes>(uniform(b));
    begin_products();
#pragma unroll
    for (int d = 0; d < kDepth / 16; ++d) add<false>(sums, left + 2 * d, right + 2 * d);
    commit_products();
  }

  template <int kTiles>
  static __device__ void multiply_across(Sums<kTiles>& sums, uint32_t a, uint32_t b) {
    const uint64_t left = describe_tile<kRowBytes>(uniform(a), kTileBytes),
                   right = describe_tile<kRowBytes>(uniform(b), kTileBytes);
    begin_products();
#pragma unroll
    for (int d = 0; d < kDepth / 16; ++d) add<true>(sums, left + 128 * d, right + 128 * d);
    commit_products();
  }

 private:
  template <bool kAcross>
  static __device__ void add(Sums<1>& sums, uint64_t a, uint64_t b) {
    multiply_64x64x16<kAcross, kAcross>(sums.v[0], a, b);
  }
  template <bool kAcross>
  static __device__ void add(Sums<2>& sums, uint64_t a, uint64_t b) {
    multiply_64x128x16<kAcross, kAcross>(sums.v, a, b);
  }
};

}  // namespace fedsmooth::wide
