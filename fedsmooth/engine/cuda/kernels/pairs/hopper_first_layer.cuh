// The first layer of AlexNet in a thread block on Hopper: copies of images as maps in shared
// memory, and their products with weights there. The two kernels that use it make the copies.
#pragma once

#include <algorithm>

#include "fedsmooth/base/normal.h"
#include "fedsmooth/engine/cuda/kernels/tensor_cores/hopper_tiles.cuh"
#include "fedsmooth/engine/cuda/kernels/this_gpu.h"
#include "fedsmooth/engine/cuda/kernels/wave/batched_values.cuh"

namespace fedsmooth {

// A copy in shared memory: planes of eight channels, which are two rows of four pixels of a color.
// A plane is rows of cells of 16 bytes, one for each block of 4x4 pixels. Any eight neighbouring
// cells are a block of a left factor.
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

// Returns the column of an output. The order makes a thread's sixteen columns neighbouring outputs.
inline __device__ int column_of(int output) {
  return output % 16 / 2 * 8 + output / 16 * 2 + output % 2;
}

// Loads the weights of `clients` clients, `client_step` bytes apart. All threads of the block must
// call it; each transposes 8 channels x 8 outputs at a time.
template <int kThreadsOfBlock>
inline __device__ void load_weights(const void* from, int64_t client_step, int clients,
                                    uint8_t* to) {
  for (int i = threadIdx.x; i < clients * BlockWeights::kGroups * 8; i += kThreadsOfBlock) {
    const int group = i / 8 % BlockWeights::kGroups, first = i % 8 * 8;
    const int client = i / 8 / BlockWeights::kGroups;
    const char* weights = static_cast<const char*>(from) + client * client_step;
    Eight<bf16> channels[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) channels[j] = load_eight<bf16>(weights, group * 64 + j * 8 + i % 8);
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      Eight<bf16> cell;
#pragma unroll
      for (int j = 0; j < 8; ++j) cell.value[j] = channels[j].value[k];
      store_eight(to, i / 8 * 64 + column_of(first + k), cell);
    }
  }
}

// Sets shared memory [from, to) to zero, for the padding of maps, which nothing writes later.
template <int kThreadsOfBlock>
inline __device__ void clear_maps(uint8_t* memory, int from, int to) {
  for (int i = from / 16 + threadIdx.x; i < to / 16; i += kThreadsOfBlock) {
    store_eight(memory, i, Eight<bf16>{});
  }
}

// A warpgroup stores a copy as quads of four pixels: a thread has one of each half of a color.
constexpr int kQuads = 256;  // quads of a color

// Returns the offset of a thread's quad in a BlockMap. A warp stores four rows of 32 pixels. With
// the five pixels of padding before them, a quad fills the last three places of one block's row and
// the first place of the next block's.
inline __device__ int cell_of(int color, int half) {
  const int thread = threadIdx.x % 128, y = thread / 8 + 5, block = thread % 8 + 1;
  return y % 4 / 2 * BlockMap::kPlane + y / 4 * BlockMap::kPitch + block * 16 + y % 2 * 8 +
         color * 2 * BlockMap::kPlane + half * 4 * BlockMap::kPitch;
}

// Stores a quad, normalised and rounded once.
inline __device__ void store_quad(uint8_t* cell, const float (&quad)[4], float mean, float scale) {
  float value[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) value[j] = (quad[j] - mean) * scale;
  const float left = __shfl_up_sync(~0u, value[3], 1);
  const __nv_bfloat162 words[2] = {
      __floats2bfloat162_rn(threadIdx.x % 8 == 0 ? 0.0f : left, value[0]),
      __floats2bfloat162_rn(value[1], value[2])};
  *reinterpret_cast<uint2*>(cell) = *reinterpret_cast<const uint2*>(words);
  if (threadIdx.x % 8 == 7) store(reinterpret_cast<bf16*>(cell + 16), value[3]);
}

// Adds the products of a copy with all taps: first of their lower 32 channels, then of the upper
// 16, which is the order of hopper_product.cu.
inline __device__ void multiply(float (&sums)[32], uint32_t map, uint32_t weights) {
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

// Returns two neighbouring outputs, rounded to bfloat16.
inline __device__ uint32_t rounded(float a, float b) {
  return bits_as<uint32_t>(__floats2bfloat162_rn(a, b));
}

// A thread's sixteen outputs of two pixels, one above the other, with their bias, as pairs. The
// thread four lanes away has the pixels beside them. Applying ReLU after the maxima changes no bit:
// of two zeros the positive one is the larger, and both compare equal.
struct TwoPixels {
  uint32_t upper[8], lower[8];

  __device__ TwoPixels(const float (&sums)[32], const float* bias) {
    const float4* of_outputs = reinterpret_cast<const float4*>(bias) + threadIdx.x % 4 * 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float4 b = __ldg(of_outputs + i);
      const float* s = sums + 8 * i;
      upper[2 * i] = rounded(s[0] + b.x, s[1] + b.y);
      lower[2 * i] = rounded(s[2] + b.x, s[3] + b.y);
      upper[2 * i + 1] = rounded(s[4] + b.z, s[5] + b.w);
      lower[2 * i + 1] = rounded(s[6] + b.z, s[7] + b.w);
    }
  }
};

// Returns whether this is the right one of the two threads of a square. The left one finishes the
// lower eight outputs, the right one the upper eight.
inline __device__ bool is_right() { return threadIdx.x / 4 % 2 != 0; }

// Returns the offset, in units of eight values, of a thread's eight outputs in a map
// [16 squares, rows, 64]. `first` is the offset of the copy's row in square 0.
inline __device__ int64_t place_of_eight(int64_t first, int rows) {
  const int lane = threadIdx.x % 32, square = threadIdx.x / 32 % 4 * 4 + lane / 8;
  return first + static_cast<int64_t>(square) * rows * 8 + lane % 4 * 2 + is_right();
}

// Launches a kernel with `memory` bytes of shared memory on at most one block per multiprocessor.
template <class Layer>
cudaError_t launch_first_layer(void (*kernel)(Layer, int), const Layer& layer, int copies,
                               int threads, int memory, cudaStream_t stream) {
  const cudaError_t status =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, memory);
  if (status != cudaSuccess) return status;
  const int blocks = std::min(copies, multiprocessors());
  kernel<<<blocks, threads, memory, stream>>>(layer, copies);
  return cudaGetLastError();
}

}  // namespace fedsmooth
