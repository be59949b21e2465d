#include "fedsmooth/engine/cuda/kernels/hopper_first_layer.h"

#include "fedsmooth/engine/cuda/kernels/batched_values.cuh"
#include "fedsmooth/engine/cuda/kernels/hopper_tiles.cuh"
#include "fedsmooth/engine/cuda/kernels/noisy_rows.cuh"

namespace fedsmooth {
namespace {

// While some wait for products or each other, the rest still draw. More would not find registers.
constexpr int kWarpgroups = 6, kThreadsOfBlock = kWarpgroups * 128;

// A copy in shared memory: planes of eight channels, that is of two rows of four pixels of a color.
// A plane is rows of cells of 16 bytes, one for each block of 4x4 pixels; eight neighbours are a
// block of a left factor, at whatever cell they begin.
struct BlockMap {
  static constexpr int kSide = 10, kPlanes = 6;
  static constexpr int kPitch = kSide * 16, kPlane = kSide * kPitch, kSize = kPlanes * kPlane;
};

// The weights [tap, 48 channels, 64 outputs] as right factors: groups of eight channels of a tap,
// each 64 columns of 16 bytes.
struct BlockWeights {
  static constexpr int kTaps = 9, kGroup = 64 * 16, kGroups = kTaps * BlockMap::kPlanes;
  static constexpr int kSize = kGroups * kGroup;
};

constexpr int kMemory = BlockWeights::kSize + kWarpgroups * 2 * BlockMap::kSize;

// Columns are so ordered that a thread's sixteen are neighbouring outputs.
__device__ int column_of(int output) { return output % 16 / 2 * 8 + output / 16 * 2 + output % 2; }

// A thread turns over 8 channels x 8 outputs.
__device__ void load_weights(const void* from, uint8_t* to) {
  for (int i = threadIdx.x; i < BlockWeights::kGroups * 8; i += kThreadsOfBlock) {
    const int group = i / 8, first = i % 8 * 8;
    Eight<bf16> channels[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) channels[j] = load_eight<bf16>(from, group * 64 + j * 8 + i % 8);
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      Eight<bf16> cell;
#pragma unroll
      for (int j = 0; j < 8; ++j) cell.value[j] = channels[j].value[k];
      store_eight(to, group * 64 + column_of(first + k), cell);
    }
  }
}

// Where a thread's first four pixels go: a warp takes four rows of 32 pixels. Five pixels of
// padding lie before them, so that they fill the upper three places of one block's row and the
// lowest of the next block's.
__device__ int first_cell() {
  const int thread = threadIdx.x % 128, y = thread / 8 + 5, block = thread % 8 + 1;
  return y % 4 / 2 * BlockMap::kPlane + y / 4 * BlockMap::kPitch + block * 16 + y % 2 * 8;
}

// x + sigma e in float32, normalised, rounded once.
__device__ void draw_copy(const FirstLayerRows& l, int row, uint8_t* map) {
  constexpr int kQuads = 256;  // of a color
  const NoisyRows& r = l.rows;
  const int64_t place = r.begin + row;
  const NoisyCopies c = r.copies[request_of(r, place)];
  const uint32_t sample = sample_of(c, place);
  const int thread = threadIdx.x % 128;
  const float4* x = reinterpret_cast<const float4*>(r.x) + int64_t{c.image} * 3 * kQuads + thread;
  uint8_t* to = map + first_cell();
#pragma unroll 1
  for (int color = 0; color < 3; ++color) {
    const float mean = l.mean[color], scale = l.scale[color];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int quad = color * kQuads + half * 128;
      const float4 pixels = __ldg(x + quad);
      const float clean[4] = {pixels.x, pixels.y, pixels.z, pixels.w};
      float value[4];
      noisy_quad<false>(r, c, sample, quad + thread, clean, value);
#pragma unroll
      for (int j = 0; j < 4; ++j) value[j] = (value[j] - mean) * scale;
      const float left = __shfl_up_sync(~0u, value[3], 1);
      const __nv_bfloat162 words[2] = {
          __floats2bfloat162_rn(thread % 8 == 0 ? 0.0f : left, value[0]),
          __floats2bfloat162_rn(value[1], value[2])};
      uint8_t* cell = to + color * 2 * BlockMap::kPlane + half * 4 * BlockMap::kPitch;
      *reinterpret_cast<uint2*>(cell) = *reinterpret_cast<const uint2*>(words);
      if (thread % 8 == 7) store(reinterpret_cast<bf16*>(cell + 16), value[3]);
    }
  }
  show_to_products();
}

// By taps, first all of their lower 32 channels, then the upper 16, as hopper_product.cu does.
__device__ void multiply(float (&sums)[32], uint32_t map, uint32_t weights) {
  const uint64_t left = describe_pixels(map, BlockMap::kPlane, BlockMap::kPitch);
  const uint64_t right = describe_pixels(weights, BlockWeights::kGroup, 128);
  begin_products();
#pragma unroll
  for (int step = 0; step < 27; ++step) {
    const int tap = step < 18 ? step / 2 : step - 18, chunk = step < 18 ? step % 2 : 2;
    const int from = tap / 3 * BlockMap::kPitch + tap % 3 * 16 + chunk * 2 * BlockMap::kPlane;
    const int weight = (tap * BlockMap::kPlanes + chunk * 2) * BlockWeights::kGroup;
    multiply_64x64x16<false, false>(sums, left + from / 16, right + weight / 16);
  }
  commit_products();
}

// The larger of two values each, rounded; NaN wins.
__device__ uint32_t larger(uint32_t a, uint32_t b) {
  return bits_as<uint32_t>(__hmax2_nan(bits_as<__nv_bfloat162>(a), bits_as<__nv_bfloat162>(b)));
}
__device__ uint32_t larger(float2 a, float2 b) {
  return larger(bits_as<uint32_t>(__floats2bfloat162_rn(a.x, a.y)),
                bits_as<uint32_t>(__floats2bfloat162_rn(b.x, b.y)));
}

// Bias, ReLU and the maxima of squares; that ReLU comes last changes no bit, as sums are never a
// negative zero. A thread has sixteen outputs of two pixels, one above the other; four lanes away
// are those beside them.
__device__ void finish_copy(const FirstLayerRows& l, const float (&sums)[32], int row) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, quarter = lane % 4;
  const float4* bias = reinterpret_cast<const float4*>(l.bias) + quarter * 4;
  uint32_t largest[8];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float4 b = __ldg(bias + i);
    const float* s = sums + 8 * i;
    largest[2 * i] = larger(float2{s[0] + b.x, s[1] + b.y}, float2{s[2] + b.x, s[3] + b.y});
    largest[2 * i + 1] = larger(float2{s[4] + b.z, s[5] + b.w}, float2{s[6] + b.z, s[7] + b.w});
  }
  // The left one of a square keeps the lower eight outputs, the right one the upper.
  const bool right = lane / 4 % 2 != 0;
  uint32_t out[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint32_t kept = right ? largest[i + 4] : largest[i];
    const uint32_t given = right ? largest[i] : largest[i + 4];
    out[i] = larger(larger(kept, __shfl_xor_sync(~0u, given, 4)), 0u);
  }
  const int64_t square = warp * 4 + lane / 8;
  static_cast<uint4*>(l.out)[(square * l.rows.rows + row) * 8 + quarter * 2 + right] =
      make_uint4(out[0], out[1], out[2], out[3]);
}

// A warpgroup takes a copy at a time: while tensor cores work on its map, it draws the next one.
__global__ void __launch_bounds__(kThreadsOfBlock, 1)
    first_layer_kernel(const __grid_constant__ FirstLayerRows l, int used) {
  extern __shared__ __align__(128) uint8_t memory[];
  load_weights(l.kernel, memory);
  for (int i = BlockWeights::kSize / 16 + threadIdx.x; i < kMemory / 16; i += kThreadsOfBlock) {
    store_eight(memory, i, Eight<bf16>{});
  }
  show_to_products();
  __syncthreads();
  const int warpgroup = uniform(threadIdx.x / 128);
  // One after another of the blocks: then every one gets as many, give or take one.
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

cudaError_t make_first_layer_hopper(const FirstLayerRows& l, cudaStream_t stream) {
  const int64_t left = l.rows.total - l.rows.begin;
  const int used = static_cast<int>(left < l.rows.rows ? left : l.rows.rows);
  if (used <= 0) return cudaSuccess;
  int device = 0, multiprocessors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  const cudaError_t status = cudaFuncSetAttribute(
      first_layer_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kMemory);
  if (status != cudaSuccess) return status;
  const int blocks = used < multiprocessors ? used : multiprocessors;
  first_layer_kernel<<<blocks, kThreadsOfBlock, kMemory, stream>>>(l, used);
  return cudaGetLastError();
}

}  // namespace fedsmooth
