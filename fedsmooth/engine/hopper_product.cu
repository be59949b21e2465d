#include "fedsmooth/engine/hopper_product.h"

#include "fedsmooth/engine/hopper_tiles.cuh"
#include "fedsmooth/engine/sgd_step.cuh"

namespace fedsmooth {
namespace {

// A warpgroup sums up kOwn results of 64 x 64 values, in pieces of kDepth.
template <Side kSideOf, int kWarpgroupsOf, int kOwnOf, int kDepthOf, int kStagesOf>
struct Shape {
  static constexpr Side kSide = kSideOf;
  static constexpr int kWarpgroups = kWarpgroupsOf, kOwn = kOwnOf, kDepth = kDepthOf;
  static constexpr int kStages = kStagesOf, kGroup = kWarpgroups * kOwn;
  static constexpr int kTile = 64 * kDepth * 2;  // bytes of an item
  // Which side's tiles hold [depth, 64]; the others hold [64, depth].
  static constexpr bool kTransposeLeft = kSide == Side::kWeightGradient;
  static constexpr bool kTransposeRight = kSide != Side::kMapGradient;
  static constexpr int kLeftRow = kTransposeLeft ? 128 : kDepth * 2;  // bytes
  static constexpr int kRightRow = kTransposeRight ? 128 : kDepth * 2;
};

// Where a block's results lie.
struct Place {
  int client, group, row0, column0;
};

struct Operands {
  CUtensorMap left, right;
  DevicePairs pairs;
  int pieces = 0;  // of the depth
};

// Starts the copies of a piece into its stage. Called by one warp.
template <class S>
__device__ void start_copies(const Operands& o, const Place& place, int piece, uint32_t stage,
                             uint32_t arrived) {
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

// A warpgroup's pairs of a chunk: lane i holds the i-th of each result, as steps of descriptions.
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
__device__ void add_products(float (&sums)[S::kOwn][32], const ChunkPairs<S>& pairs,
                             uint32_t stage) {
  // Along the depth, by 16 values, in units of 16 bytes.
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

// All sums of a block.
template <class S>
__device__ void sum_pairs(const Operands& o, const Place& place, int warpgroup, uint32_t shared,
                          float (&sums)[S::kOwn][32]) {
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
__device__ void each_pair(const float (&sums)[32], const Each& each) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const int row = 16 * warp + 8 * (i % 2) + lane / 4, column = 8 * (i / 2) + lane % 4 * 2;
    each(row, column, sums[2 * i], sums[2 * i + 1]);
  }
}

constexpr int kMapPitch = 64 + kPad, kSumPitch = 64 + 4;  // of tiles on their way out

// A finished tile of a map goes through shared memory, to be written in whole lines.
__device__ void finish_map(const MapProduct& p, const Place& place, int result,
                           const float (&sums)[32], bf16* tile, int warpgroup) {
  const int64_t at =
      ((static_cast<int64_t>(place.client) * p.pairs.results + result) * p.rows + place.row0) *
          p.columns +
      place.column0;
  const float* bias = p.bias + place.client * p.bias_client + place.column0;
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
  if (p.out_float != nullptr) return;
  sync_warpgroup(warpgroup);
#pragma unroll
  for (int i = threadIdx.x % 128; i < 64 * 8; i += 128) {
    const int row = i / 8, column = i % 8 * 8;
    if (place.column0 + column >= p.columns) continue;
    const int64_t eight = (at + row * p.columns + column) / 8;
    Eight<bf16> values = load_eight<bf16>(tile, (row * kMapPitch + column) / 8);
    if (p.mask != nullptr) {
      const Eight<bf16> mask = load_eight<bf16>(p.mask, eight);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        if (!(to_float(mask.value[j]) > 0.0f)) values.value[j] = __float2bfloat16(0.0f);
      }
    }
    store_eight(p.out, eight, values);
  }
  sync_warpgroup(warpgroup);
}

__device__ Place place_of_block(int column_tiles) {
  const auto tile = static_cast<int>(blockIdx.x);
  return {static_cast<int>(blockIdx.z), static_cast<int>(blockIdx.y), tile / column_tiles * 64,
          tile % column_tiles * 64};
}

// Tiles are swizzled in blocks of 1024 bytes.
__device__ uint8_t* aligned_memory() {
  extern __shared__ uint8_t memory[];
  return memory + (1024 - shared_address(memory) % 1024) % 1024;
}

template <class S, int kBlocks>
__global__ void __launch_bounds__(S::kWarpgroups * 128, kBlocks)
    multiply_kernel(const __grid_constant__ Operands o, const __grid_constant__ MapProduct p) {
  uint8_t* shared = aligned_memory();
  const Place place = place_of_block((p.columns + 63) / 64);
  const int warpgroup = uniform(threadIdx.x / 128);
  float sums[S::kOwn][32] = {};
  sum_pairs<S>(o, place, warpgroup, shared_address(shared), sums);
  bf16* tile = reinterpret_cast<bf16*>(shared) + warpgroup * 64 * kMapPitch;
#pragma unroll
  for (int r = 0; r < S::kOwn; ++r) {
    const int at = place.group * S::kGroup + warpgroup * S::kOwn + r;
    if (at < p.pairs.results) {
      finish_map(p, place, p.pairs.order[at], sums[r], tile, warpgroup);
    }
  }
}

// A warpgroup's 64 x 64 weights and their momentum, four neighbours at a time.
struct WeightTile {
  Four weights[8], velocity[8];

  // Calls each(i, row, column, position) for those that exist.
  template <class Each>
  __device__ void each_four(const WeightUpdate& u, const Place& place, int tap, const Each& each) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = threadIdx.x % 128 / 16 + 8 * i, column = threadIdx.x % 16 * 4;
      const int c = place.row0 + row, k = place.column0 + column;
      if (c >= u.in_channels || k >= u.out_channels) continue;
      each(i, row, column, (static_cast<int64_t>(tap) * u.in_channels + c) * u.out_channels + k);
    }
  }

  __device__ void load(const WeightUpdate& u, const Place& place, int tap) {
    const int64_t client = place.client * u.client_size;
    each_four(u, place, tap, [&](int i, int, int, int64_t position) {
      weights[i] = load_four(u.weights + client + position);
      velocity[i] = load_four(u.velocity + client + position);
    });
  }

  // A step of SGD with the gradient in `tile`.
  __device__ void step(const WeightUpdate& u, const Place& place, int tap, const float* tile) {
    const int64_t client = place.client * u.client_size;
    const ClientSettings s = u.settings[place.client];
    each_four(u, place, tap, [&](int i, int row, int column, int64_t position) {
      const Four gradient = *reinterpret_cast<const Four*>(tile + row * kSumPitch + column);
      step_four<bf16>(u, s, client, position, gradient, weights[i], velocity[i]);
    });
  }
};

template <class S, int kBlocks>
__global__ void __launch_bounds__(S::kWarpgroups * 128, kBlocks)
    update_kernel(const __grid_constant__ Operands o, const __grid_constant__ WeightUpdate u) {
  uint8_t* shared = aligned_memory();
  const Place place = place_of_block((u.out_channels + 63) / 64);
  const int warpgroup = uniform(threadIdx.x / 128);
  const int first = place.group * S::kGroup + warpgroup * S::kOwn;
  WeightTile weights;
  // Early, so that it passes while the sums are made.
  if (S::kOwn == 1 && first < u.pairs.results) weights.load(u, place, u.pairs.order[first]);
  float sums[S::kOwn][32] = {};
  sum_pairs<S>(o, place, warpgroup, shared_address(shared), sums);
  float* tile = reinterpret_cast<float*>(shared) + warpgroup * 64 * kSumPitch;
#pragma unroll
  for (int r = 0; r < S::kOwn; ++r) {
    if (first + r >= u.pairs.results) continue;
    const int tap = u.pairs.order[first + r];
    if (S::kOwn > 1) weights.load(u, place, tap);
    each_pair(sums[r], [&](int row, int column, float a, float b) {
      *reinterpret_cast<float2*>(tile + row * kSumPitch + column) = make_float2(a, b);
    });
    sync_warpgroup(warpgroup);
    weights.step(u, place, tap, tile);
    sync_warpgroup(warpgroup);
  }
}

// A tensor [clients, items, rows, columns] of bfloat16, copied in boxes of box_rows x box_columns.
struct BoxedTensor {
  const void* data = nullptr;
  int columns = 0, rows = 0, items = 0, clients = 0;
  int64_t client_size = 0;
  int box_columns = 0, box_rows = 0;

  cudaError_t encode(CUtensorMap& map) const {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result;
    const cudaError_t status = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found,
                                                                12000, cudaEnableDefault, &result);
    if (status != cudaSuccess) return status;
    if (found == nullptr) return cudaErrorNotSupported;
    const auto u64 = [](int64_t value) { return static_cast<cuuint64_t>(value); };
    const cuuint64_t sizes[] = {u64(columns), u64(rows), u64(items), u64(clients)};
    const cuuint64_t strides[] = {u64(columns) * 2, u64(columns) * 2 * u64(rows),
                                  u64(client_size) * 2};
    const cuuint32_t box[] = {static_cast<cuuint32_t>(box_columns),
                              static_cast<cuuint32_t>(box_rows), 1, 1};
    const cuuint32_t ones[] = {1, 1, 1, 1};
    const CUtensorMapSwizzle swizzle = box_columns == 64   ? CU_TENSOR_MAP_SWIZZLE_128B
                                       : box_columns == 32 ? CU_TENSOR_MAP_SWIZZLE_64B
                                                           : CU_TENSOR_MAP_SWIZZLE_32B;
    const auto call = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found);
    const CUresult done =
        call(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, const_cast<void*>(data), sizes, strides,
             box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return done == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
  }
};

template <class S, class Task>
cudaError_t launch(void (*kernel)(Operands, Task), const Task& task, BoxedTensor left,
                   BoxedTensor right, int depth, int tiles, int tile_bytes, cudaStream_t stream) {
  left.box_columns = S::kLeftRow / 2;
  left.box_rows = S::kTransposeLeft ? S::kDepth : 64;
  right.box_columns = S::kRightRow / 2;
  right.box_rows = S::kTransposeRight ? S::kDepth : 64;
  Operands o;
  o.pairs = task.pairs;
  o.pieces = (depth + S::kDepth - 1) / S::kDepth;
  cudaError_t status = left.encode(o.left);
  if (status == cudaSuccess) status = right.encode(o.right);
  const int stages = S::kStages * o.pairs.most_items * S::kTile;
  const int out = S::kWarpgroups * tile_bytes;
  const int bytes = 1024 + (stages > out ? stages : out);
  if (status == cudaSuccess) {
    // Several layers share a kernel, each with its own need.
    constexpr int kMost = 227 * 1024 - 1024;
    status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kMost);
  }
  if (status != cudaSuccess) return status;
  kernel<<<dim3(tiles, o.pairs.groups, task.clients), S::kWarpgroups * 128, bytes, stream>>>(o,
                                                                                             task);
  return cudaGetLastError();
}

template <class S, int kBlocks>
cudaError_t launch_multiply(const MapProduct& p, cudaStream_t stream) {
  const int64_t left_size = static_cast<int64_t>(p.left_pixels) * p.rows * p.depth;
  const BoxedTensor left{p.left, p.depth, p.rows, p.left_pixels, p.clients, left_size};
  const BoxedTensor right{p.kernel,
                          p.gradient ? p.depth : p.columns,
                          p.gradient ? p.columns : p.depth,
                          p.taps,
                          p.clients,
                          p.kernel_client};
  return launch<S>(multiply_kernel<S, kBlocks>, p, left, right, p.depth,
                   p.rows / 64 * ((p.columns + 63) / 64), 64 * kMapPitch * 2, stream);
}

template <class S, int kBlocks>
cudaError_t launch_update(const WeightUpdate& u, cudaStream_t stream) {
  const int64_t in_row = static_cast<int64_t>(u.in_pixels) * u.in_channels;
  const int64_t out_row = static_cast<int64_t>(u.out_pixels) * u.out_channels;
  const BoxedTensor left{u.x, u.in_channels, u.rows, u.in_pixels, u.clients, in_row * u.rows};
  const BoxedTensor right{u.dy, u.out_channels, u.rows, u.out_pixels, u.clients, out_row * u.rows};
  return launch<S>(update_kernel<S, kBlocks>, u, left, right, u.rows,
                   (u.in_channels + 63) / 64 * ((u.out_channels + 63) / 64), 64 * kSumPitch * 4,
                   stream);
}

// The fastest of those tried on an H200. Two blocks share a multiprocessor's memory, or one has it.
constexpr int kHalf = 13, kWhole = 26;  // tiles of 64 x 64, for one stage

template <Side kSide>
struct Few;  // results
template <>
struct Few<Side::kForward> : Shape<Side::kForward, 4, 1, 32, 2> {};
template <>
struct Few<Side::kMapGradient> : Shape<Side::kMapGradient, 4, 1, 64, 2> {};

template <Side kSide>
using Many = Shape<kSide, 4, 2, 32, 2>;

using ShortSums = Shape<Side::kWeightGradient, 2, 1, 64, 1>;
using MediumSums = Shape<Side::kWeightGradient, 2, 1, 32, 1>;
using LongSums = Shape<Side::kWeightGradient, 3, 3, 32, 2>;

template <class S>
Tiling tiling_of(int tiles) {
  return {true, S::kGroup, S::kDepth, S::kStages, tiles * 64 / S::kDepth / S::kStages};
}

bool is(const Tiling& tiling, const Tiling& other) {
  return tiling.results == other.results && tiling.depth == other.depth;
}

}  // namespace

Tiling hopper_tiling(Side side, int results, int pairs) {
  switch (side) {
    case Side::kForward:
      return results <= 4 ? tiling_of<Few<Side::kForward>>(kHalf)
                          : tiling_of<Many<Side::kForward>>(kWhole);
    case Side::kMapGradient:
      return results <= 4 ? tiling_of<Few<Side::kMapGradient>>(kWhole)
                          : tiling_of<Many<Side::kMapGradient>>(kWhole);
    case Side::kWeightGradient:
      break;
  }
  // Weights with few pairs wait for memory alone, those with many for the products.
  if (pairs > 32 * results) return tiling_of<LongSums>(kWhole);
  return pairs > 4 * results ? tiling_of<MediumSums>(kHalf) : tiling_of<ShortSums>(kHalf);
}

cudaError_t multiply_maps_hopper(const MapProduct& p, cudaStream_t stream) {
  const bool few = p.pairs.tiling.results == 4;
  if (p.gradient) {
    return few ? launch_multiply<Few<Side::kMapGradient>, 1>(p, stream)
               : launch_multiply<Many<Side::kMapGradient>, 1>(p, stream);
  }
  return few ? launch_multiply<Few<Side::kForward>, 2>(p, stream)
             : launch_multiply<Many<Side::kForward>, 1>(p, stream);
}

cudaError_t update_kernel_hopper(const WeightUpdate& u, cudaStream_t stream) {
  const Tiling& tiling = u.pairs.tiling;
  if (is(tiling, tiling_of<LongSums>(kWhole))) return launch_update<LongSums, 1>(u, stream);
  if (is(tiling, tiling_of<MediumSums>(kHalf))) return launch_update<MediumSums, 2>(u, stream);
  return launch_update<ShortSums, 2>(u, stream);
}

}  // namespace fedsmooth
