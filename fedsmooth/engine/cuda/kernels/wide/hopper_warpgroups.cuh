// Matrix products by warpgroups (wgmma) on the tiles of wide_tiles.cuh, for Hopper.
#pragma once

#include "fedsmooth/engine/cuda/kernels/tensor_cores/hopper_tiles.cuh"
#include "fedsmooth/engine/cuda/kernels/wide/wide_tiles.cuh"

namespace fedsmooth::wide {

/// multiply() and multiply_across() compute what those of ByWarps do, but return at once: their
/// sums are complete after the next before_barrier() or finish().
struct ByWarpgroups {
  /// Makes the thread's finished copies visible to the next products, and waits for all earlier
  /// products. Every thread calls it before the barrier that precedes the next products and the
  /// next copies, which overwrite the tiles of earlier products.
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
