#include "fedsmooth/engine/cuda/kernels/pairs/first_layer.h"

#include "fedsmooth/engine/cuda/kernels/pairs/hopper_first_layer.cuh"
#include "fedsmooth/engine/cuda/kernels/wave/noisy_rows.cuh"

namespace fedsmooth {
namespace {

// While some warpgroups wait for products or each other, the rest draw. There are no registers for
// more.
constexpr int kWarpgroups = 6, kThreadsOfBlock = kWarpgroups * 128;

constexpr int kMemory = BlockWeights::kSize + kWarpgroups * 2 * BlockMap::kSize;

// Draws a copy: x + sigma e in float32, normalised, rounded once.
__device__ void draw_copy(const FirstLayerRows& l, int row, uint8_t* map) {
  const NoisyRows& r = l.rows;
  const int64_t place = r.begin + row;
  const NoisyCopies c = r.copies[request_of(r, place)];
  const uint32_t sample = sample_of(c, place);
  const int thread = threadIdx.x % 128;
  const float4* x = reinterpret_cast<const float4*>(r.x) + int64_t{c.image} * 3 * kQuads + thread;
#pragma unroll 1
  for (int color = 0; color < 3; ++color) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int quad = color * kQuads + half * 128;
      const float4 pixels = __ldg(x + quad);
      const float clean[4] = {pixels.x, pixels.y, pixels.z, pixels.w};
      float noisy[4];
      noisy_quad<false>(r, c, sample, quad + thread, clean, noisy);
      store_quad(map + cell_of(color, half), noisy, l.mean[color], l.scale[color]);
    }
  }
  show_to_products();
}

// Finishes a copy: bias, the maxima of squares and ReLU.
__device__ void finish_copy(const FirstLayerRows& l, const float (&sums)[32], int row) {
  const TwoPixels pixels(sums, l.bias);
  const bool right = is_right();
  uint32_t out[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint32_t low = larger(pixels.upper[i], pixels.lower[i]);
    const uint32_t high = larger(pixels.upper[i + 4], pixels.lower[i + 4]);
    const uint32_t beside = __shfl_xor_sync(~0u, right ? low : high, 4);
    out[i] = larger(larger(right ? high : low, beside), 0u);
  }
  static_cast<uint4*>(l.out)[place_of_eight(int64_t{row} * 8, l.rows.rows)] =
      make_uint4(out[0], out[1], out[2], out[3]);
}

// Each warpgroup computes one copy at a time. While tensor cores work on its map, it draws the
// next.
__global__ void __launch_bounds__(kThreadsOfBlock, 1)
    first_layer_kernel(const __grid_constant__ FirstLayerRows l, int used) {
  extern __shared__ __align__(128) uint8_t memory[];
  load_weights<kThreadsOfBlock>(l.kernel, 0, 1, memory);
  clear_maps<kThreadsOfBlock>(memory, BlockWeights::kSize, kMemory);
  show_to_products();
  __syncthreads();
  const int warpgroup = uniform(threadIdx.x / 128);
  // Copies are dealt to the blocks in turn, so that their numbers differ by at most one.
  int row = warpgroup * gridDim.x + blockIdx.x;
  if (row >= used) return;
  int map = BlockWeights::kSize + warpgroup * 2 * BlockMap::kSize, next_map = map + BlockMap::kSize;
  draw_copy(l, row, memory + map);
  while (true) {
    sync_warpgroup(warpgroup);
    float sums[32] = {};
    multiply(sums, shared_address(memory) + map, shared_address(memory));
    const int next = row + kWarpgroups * gridDim.x;
    if (next < used) draw_copy(l, next, memory + next_map);
    wait_for_products<0>();
    finish_copy(l, sums, row);
    if (next >= used) return;
    row = next;
    const int done = map;
    map = next_map;
    next_map = done;
  }
}

}  // namespace

cudaError_t make_first_layer(const FirstLayerRows& l, cudaStream_t stream) {
  const int64_t left = l.rows.total - l.rows.begin;
  const int used = static_cast<int>(left < l.rows.rows ? left : l.rows.rows);
  if (used <= 0) return cudaSuccess;
  return launch_first_layer(first_layer_kernel, l, used, kThreadsOfBlock, kMemory, stream);
}

}  // namespace fedsmooth
