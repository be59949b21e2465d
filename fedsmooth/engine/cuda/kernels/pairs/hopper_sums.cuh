// The sums of pairs of a thread block on Hopper. Callers decide what to do with the sums: write a
// map, maxima over squares of pixels, or a step of SGD.
#pragma once

#include "fedsmooth/engine/cuda/kernels/pairs/batched_product.h"
#include "fedsmooth/engine/cuda/kernels/tensor_cores/hopper_tiles.cuh"

namespace fedsmooth {

// A warpgroup computes kOwn results of 64 x 64 values, in pieces of depth kDepth.
template <Side kSideOf, int kWarpgroupsOf, int kOwnOf, int kDepthOf, int kStagesOf>
struct SumShape {
  static constexpr Side kSide = kSideOf;
  static constexpr int kWarpgroups = kWarpgroupsOf, kOwn = kOwnOf, kDepth = kDepthOf;
  static constexpr int kStages = kStagesOf, kGroup = kWarpgroups * kOwn;
  static constexpr int kTile = 64 * kDepth * 2;  // bytes of an item
  // Whether a side's tiles are [depth, 64]; otherwise they are [64, depth].
  static constexpr bool kTransposeLeft = kSide == Side::kWeightGradient;
  static constexpr bool kTransposeRight = kSide != Side::kMapGradient;
  static constexpr int kLeftRow = kTransposeLeft ? 128 : kDepth * 2;  // bytes
  static constexpr int kRightRow = kTransposeRight ? 128 : kDepth * 2;
};

// The client, group of results, first row and first column of a block's results.
struct Place {
  int client, group, row0, column0;
};

// Both sides of the products, as tensors [client, item, row, column].
struct Operands {
  CUtensorMap left, right;
  DevicePairs pairs;
  int pieces = 0;  // number of pieces of the depth
};

// Starts the copies of a piece into its stage. Called by one warp.
template <class S>
inline __device__ void start_copies(const Operands& o, const Place& place, int piece,
                                    uint32_t stage, uint32_t arrived) {
  const DevicePairs& pairs = o.pairs;
  const int chunk = pairs.chunk_first[place.group] + piece / o.pieces;
  const int depth0 = piece % o.pieces * S::kDepth, lane = threadIdx.x % 32;
  const int first = pairs.item_first[chunk], count = pairs.item_first[chunk + 1] - first;
  const int lefts = pairs.lefts[chunk];
  if (lane == 0) expect_bytes(arrived, count * S::kTile);
  __syncwarp();
  for (int i = lane; i < count; i += 32) {
    const bool left = i < lefts, transpose = left ? S::kTransposeLeft : S::kTransposeRight;
    const int across = left ? place.row0 : place.column0;
    copy_box(stage + i * S::kTile, left ? o.left : o.right, arrived, transpose ? across : depth0,
             transpose ? depth0 : across, pairs.items[first + i], place.client);
  }
}

// A warpgroup's pairs of a chunk. Lane i has pair i of each result, as offsets in the descriptions
// of both sides' tiles.
template <class S>
struct ChunkPairs {
  int count[S::kOwn];
  uint32_t steps[S::kOwn];

  __device__ void load(const DevicePairs& pairs, int chunk, int warpgroup) {
    const int* first = pairs.place_first + chunk * S::kGroup + warpgroup * S::kOwn;
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < S::kOwn; ++r) {
      count[r] = first[r + 1] - first[r];
      if (lane >= count[r]) continue;
      const int2 place = pairs.places[first[r] + lane];
      steps[r] = place.x * (S::kTile / 16) << 16 | place.y * (S::kTile / 16);
    }
  }
};

template <class S>
inline __device__ void add_products(float (&sums)[S::kOwn][32], const ChunkPairs<S>& pairs,
                                    uint32_t stage) {
  // Distance of 16 values along the depth, in units of 16 bytes.
  constexpr int kLeftStep = S::kTransposeLeft ? 128 : 2, kRightStep = S::kTransposeRight ? 128 : 2;
  const uint64_t left = describe_tile<S::kLeftRow>(stage);
  const uint64_t right = describe_tile<S::kRightRow>(stage);
  begin_products();
#pragma unroll
  for (int r = 0; r < S::kOwn; ++r) {
    const int count = uniform(pairs.count[r]);
#pragma unroll 4
    for (int i = 0; i < count; ++i) {
      const uint32_t steps = __shfl_sync(~0u, pairs.steps[r], i);
      begin_products();
#pragma unroll
      for (int d = 0; d < S::kDepth / 16; ++d) {
        multiply_64x64x16<S::kTransposeLeft, S::kTransposeRight>(
            sums[r], left + (steps >> 16) + d * kLeftStep,
            right + (steps & 0xFFFF) + d * kRightStep);
      }
    }
  }
  finish_products();
}

// Computes all sums of a block. Every thread of the block must call it.
template <class S>
inline __device__ void sum_pairs(const Operands& o, const Place& place, int warpgroup,
                                 uint32_t shared, float (&sums)[S::kOwn][32]) {
  __shared__ uint64_t barriers[S::kStages];
  const bool copies = threadIdx.x < 32;
  const int chunk0 = o.pairs.chunk_first[place.group];
  const int pieces = (o.pairs.chunk_first[place.group + 1] - chunk0) * o.pieces;
  const int stage_size = o.pairs.most_items * S::kTile;
  const auto stage = [&](int piece) { return shared + piece % S::kStages * stage_size; };
  const auto arrived = [&](int piece) { return shared_address(barriers + piece % S::kStages); };
  if (threadIdx.x == 0) {
    for (int i = 0; i < S::kStages; ++i) init_barrier(arrived(i));
    show_barriers_to_copies();
  }
  __syncthreads();
  for (int piece = 0; copies && piece < S::kStages && piece < pieces; ++piece) {
    start_copies<S>(o, place, piece, stage(piece), arrived(piece));
  }
  ChunkPairs<S> pairs;
  for (int piece = 0; piece < pieces; ++piece) {
    if (piece % o.pieces == 0) pairs.load(o.pairs, chunk0 + piece / o.pieces, warpgroup);
    wait_for_phase(arrived(piece), piece / S::kStages % 2);
    add_products<S>(sums, pairs, stage(piece));
    __syncthreads();
    const int next = piece + S::kStages;
    if (copies && next < pieces) start_copies<S>(o, place, next, stage(next), arrived(next));
  }
}

// Calls each(row, column, a, b) for a thread's pairs of neighbouring values.
template <class Each>
inline __device__ void each_pair(const float (&sums)[32], const Each& each) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const int row = 16 * warp + 8 * (i % 2) + lane / 4, column = 8 * (i / 2) + lane % 4 * 2;
    each(row, column, sums[2 * i], sums[2 * i + 1]);
  }
}

// Returns the place of a block whose map has `column_tiles` tiles of 64 columns.
inline __device__ Place place_of_block(int column_tiles) {
  const auto tile = static_cast<int>(blockIdx.x);
  return {static_cast<int>(blockIdx.z), static_cast<int>(blockIdx.y), tile / column_tiles * 64,
          tile % column_tiles * 64};
}

// Returns dynamic shared memory, aligned to the 1024 bytes that swizzled tiles need.
inline __device__ uint8_t* aligned_memory() {
  extern __shared__ uint8_t memory[];
  return memory + (1024 - shared_address(memory) % 1024) % 1024;
}

}  // namespace fedsmooth
