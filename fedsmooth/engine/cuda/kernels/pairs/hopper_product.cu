#include "fedsmooth/engine/cuda/kernels/pairs/hopper_product.h"

#include "fedsmooth/engine/cuda/kernels/dependent_launch.cuh"
#include "fedsmooth/engine/cuda/kernels/pairs/hopper_maps.cuh"
#include "fedsmooth/engine/cuda/kernels/pairs/hopper_wide.h"
#include "fedsmooth/engine/cuda/kernels/pairs/sgd_step.cuh"
#include "fedsmooth/engine/cuda/kernels/tensor_cores/boxed_tensor.h"
#include "fedsmooth/engine/cuda/kernels/this_gpu.h"

namespace fedsmooth {
namespace {

template <class S, int kBlocks>
__global__ void __launch_bounds__(S::kWarpgroups * 128, kBlocks)
    multiply_kernel(const __grid_constant__ Operands o, const __grid_constant__ MapProduct p) {
  uint8_t* shared = aligned_memory();
  const Place place = place_of_block((p.columns + 63) / 64);
  const int warpgroup = uniform(threadIdx.x / 128);
  float sums[S::kOwn][32] = {};
  sum_pairs<S>(o, place, warpgroup, shared_address(shared), sums);
  bf16* tiles = reinterpret_cast<bf16*>(shared);
  const int first = place.group * S::kGroup;
#pragma unroll
  for (int r = 0; r < S::kOwn; ++r) {
    const int slot = warpgroup * S::kOwn + r;
    if (first + slot >= p.pairs.results) break;
    finish_tile(p, place, p.pairs.order[first + slot], sums[r], tiles + slot * 64 * kMapPitch);
  }
  if (p.out_float != nullptr) return;
  __syncthreads();
  const int count = min(S::kGroup, p.pairs.results - first);
  if (p.pool_columns == 0) {
    write_map<S>(p, place, count, tiles);
  } else if (p.gradient) {
    write_squares<S>(p, place, count, tiles);
  } else {
    write_maxima<S>(p, place, count, tiles);
  }
}

constexpr int kSumPitch = 64 + 4;  // values between rows of a tile of gradients

// A warpgroup's 64 x 64 weights and their momentum, four neighbours at a time.
struct WeightTile {
  Four weights[8], velocity[8];

  // Calls each(i, row, column, position) for the thread's groups of four that exist.
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

  // Applies a step of SGD with the gradient in `tile`.
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
  let_next_kernel_begin();  // update_biases() may use multiprocessors that this kernel leaves idle
  uint8_t* shared = aligned_memory();
  const Place place = place_of_block((u.out_channels + 63) / 64);
  const int warpgroup = uniform(threadIdx.x / 128);
  const int first = place.group * S::kGroup + warpgroup * S::kOwn;
  WeightTile weights;
  // Loads weights early, so that the loads overlap the sums.
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

template <class S, class Task>
cudaError_t launch(void (*kernel)(Operands, Task), const Task& task, BoxedTensor left,
                   BoxedTensor right, int depth, int tiles, int out_bytes, cudaStream_t stream) {
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
  const int bytes = 1024 + (stages > out_bytes ? stages : out_bytes);
  if (status == cudaSuccess) {
    // Layers with different needs share a kernel, so it is allowed the maximum.
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
                   p.rows / 64 * ((p.columns + 63) / 64), S::kGroup * 64 * kMapPitch * 2, stream);
}

template <class S, int kBlocks>
cudaError_t launch_update(const WeightUpdate& u, cudaStream_t stream) {
  const int64_t in_row = static_cast<int64_t>(u.in_pixels) * u.in_channels;
  const int64_t out_row = static_cast<int64_t>(u.out_pixels) * u.out_channels;
  const BoxedTensor left{u.x, u.in_channels, u.rows, u.in_pixels, u.clients, in_row * u.rows};
  const BoxedTensor right{u.dy, u.out_channels, u.rows, u.out_pixels, u.clients, out_row * u.rows};
  return launch<S>(update_kernel<S, kBlocks>, u, left, right, u.rows,
                   (u.in_channels + 63) / 64 * ((u.out_channels + 63) / 64),
                   S::kWarpgroups * 64 * kSumPitch * 4, stream);
}

// The fastest of those tried on an H200, for few, some and many results. Two blocks share a
// multiprocessor's memory, or one block has it all.
constexpr int kHalf = 13, kWhole = 26;  // tiles of 64 x 64 that fit, with one stage

template <Side kSide>
struct Few;
template <>
struct Few<Side::kForward> : SumShape<Side::kForward, 4, 1, 32, 2> {};
template <>
struct Few<Side::kMapGradient> : SumShape<Side::kMapGradient, 4, 1, 64, 2> {};

template <Side kSide>
using Some = SumShape<kSide, 4, 2, 32, 2>;
template <Side kSide>
using Many = SumShape<kSide, 2, 2, 32, 1>;

using ShortSums = SumShape<Side::kWeightGradient, 2, 1, 64, 1>;
using MediumSums = SumShape<Side::kWeightGradient, 2, 1, 32, 1>;
using LongSums = SumShape<Side::kWeightGradient, 3, 3, 32, 2>;

template <class S>
Tiling tiling_of(int tiles) {
  return {true, S::kGroup, S::kDepth, S::kStages, tiles * 64 / S::kDepth / S::kStages};
}

template <class S>
bool is(const Tiling& tiling) {
  return tiling.results == S::kGroup && tiling.depth == S::kDepth && tiling.stages == S::kStages;
}

template <Side kSide>
Tiling map_tiling(int results) {
  if (results > 16) return tiling_of<Many<kSide>>(kHalf);
  if (results > 4) return tiling_of<Some<kSide>>(kWhole);
  return tiling_of<Few<kSide>>(kSide == Side::kForward ? kHalf : kWhole);
}

template <Side kSide>
cudaError_t multiply_maps_on(const MapProduct& p, cudaStream_t stream) {
  if (is<Many<kSide>>(p.pairs.tiling)) return launch_multiply<Many<kSide>, 2>(p, stream);
  if (is<Some<kSide>>(p.pairs.tiling)) return launch_multiply<Some<kSide>, 1>(p, stream);
  return launch_multiply < Few<kSide>, kSide == Side::kForward ? 2 : 1 > (p, stream);
}

}  // namespace

bool has_hopper_kernels() { return compute_capability() == 90; }

Tiling hopper_tiling(Side side, int results, int pairs) {
  if (side == Side::kForward) return map_tiling<Side::kForward>(results);
  if (side == Side::kMapGradient) return map_tiling<Side::kMapGradient>(results);
  // With few pairs per result, weights are bound by memory; with many, by the products.
  if (pairs > 32 * results) return tiling_of<LongSums>(kWhole);
  return pairs > 4 * results ? tiling_of<MediumSums>(kHalf) : tiling_of<ShortSums>(kHalf);
}

cudaError_t multiply_maps_hopper(const MapProduct& p, cudaStream_t stream) {
  constexpr int kManyRows = 4096;  // rows of a client that occupy half of the multiprocessors
  if (p.rows >= kManyRows && is_wide(p)) return multiply_maps_wide(p, stream);
  return p.gradient ? multiply_maps_on<Side::kMapGradient>(p, stream)
                    : multiply_maps_on<Side::kForward>(p, stream);
}

cudaError_t update_kernel_hopper(const WeightUpdate& u, cudaStream_t stream) {
  if (is<LongSums>(u.pairs.tiling)) return launch_update<LongSums, 1>(u, stream);
  if (is<MediumSums>(u.pairs.tiling)) return launch_update<MediumSums, 2>(u, stream);
  return launch_update<ShortSums, 2>(u, stream);
}

}  // namespace fedsmooth
