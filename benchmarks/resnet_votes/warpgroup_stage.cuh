// A stage by products of a warpgroup: 64 results by channels, 64 pixels at a time.
//
// Weights are the left factor and stay in registers; the map is the right factor, read where it
// lies. With 64 channels a product makes a whole 8 x 8 map. With fewer, the 64 results are
// kFold = 64 / channels output rows one above the other: such a group of rows takes kFold + 2 input
// rows, and the factor of an input row that an output row does not touch is zero (a quarter of the
// work at 32 channels, still faster than mma.sync).
#pragma once

#include "stage.cuh"
#include "warpgroup_ops.cuh"

namespace resnet {

template <class S>
struct WarpgroupEngine {
  static constexpr int kFold = 64 / S::kChannels;
  static constexpr int kInputRows = kFold + 2;
  static constexpr int kSteps = kInputRows * 3 * S::kChunks;
  static constexpr int kParts = S::kWidth / 8;        // of eight columns
  static constexpr int kTiles = S::kImages * kParts;  // of 64 pixels (64 kFold results)
  static_assert(S::kWidth == 8 * kFold && S::kHalo == 1 && S::kWarps == 4 && kTiles % 2 == 0);

  struct Weights {
    uint4 steps[kSteps];  // left factors [16 of 64 results, 16]
    float bias[2];
  };

  int first_channel;  // of the warp's 16
  uint32_t output;    // the lane's cell of the tile's first two groups of pixels

  __device__ WarpgroupEngine() {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    first_channel = warp * 16 % S::kChannels;
    const int fold = warp * 16 / S::kChannels;
    const int group = lane / 16, plane = first_channel / 8 + lane / 8 % 2, x = lane % 8;
    output = plane * S::kPlane + (1 + group * kFold + fold) * S::kPitch + (x + 1) * 16;
  }

  __device__ void load(Weights& w, const LayerList& layers, int layer) const {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const uint4* from = layers.weights + (static_cast<int64_t>(layer) * 4 + warp) * kSteps * 32;
#pragma unroll
    for (int i = 0; i < kSteps; ++i) w.steps[i] = load_weights(from + i * 32 + lane);
    const float* bias = layers.biases + layer * S::kChannels + first_channel + lane / 4;
    w.bias[0] = __ldg(bias);
    w.bias[1] = __ldg(bias + 8);
  }

  static __device__ uint32_t tile_offset(int tile) {
    return tile / kParts * S::kMap + tile % kParts * 128;
  }

  template <bool kResidual>
  __device__ void start(float (&sums)[32], const Weights& w, uint32_t out) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // two groups of eight pixels
      Fragment saved;
      if constexpr (kResidual) load_transposed(saved, out + i * 2 * kFold * S::kPitch);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float bias = w.bias[j % 2];
        sums[8 * i + 2 * j] = kResidual ? low_half(saved.v[j]) + bias : bias;
        sums[8 * i + 2 * j + 1] = kResidual ? high_half(saved.v[j]) + bias : bias;
      }
    }
  }

  __device__ void finish(const float (&sums)[32], uint32_t out) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      Fragment f;
#pragma unroll
      for (int j = 0; j < 4; ++j) f.v[j] = pack<true>(sums[8 * i + 2 * j], sums[8 * i + 2 * j + 1]);
      store_transposed(out + i * 2 * kFold * S::kPitch, f);
    }
  }

  __device__ void multiply(float (&sums)[32], const Weights& w, uint32_t in) const {
    const uint64_t pixels = describe_pixels(in, S::kPlane, kFold * S::kPitch);
    begin_products();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int row = step / (3 * S::kChunks), dx = step / S::kChunks % 3,
                chunk = step % S::kChunks;
      multiply_add_64x64(sums, w.steps[step],
                         pixels + (row * S::kPitch + dx * 16 + chunk * 2 * S::kPlane) / 16);
    }
    commit_products();
  }

  /// out = relu(conv(in) + bias + out if kResidual). Two tiles are under way: one is finished while
  /// the tensor cores work on the other. (Unrolled further, ptxas runs out of registers and puts
  /// the products in series.)
  template <bool kResidual>
  __device__ __forceinline__ void convolve(const Weights& w, uint32_t in, uint32_t out) const {
    out += output;
#pragma unroll 1
    for (int tile = 0; tile < kTiles; tile += 2) {
      float first[32], second[32];
      start<kResidual>(first, w, out + tile_offset(tile));
      multiply(first, w, in + tile_offset(tile));
      start<kResidual>(second, w, out + tile_offset(tile + 1));
      multiply(second, w, in + tile_offset(tile + 1));
      wait_for_products<1>();
      finish(first, out + tile_offset(tile));
      wait_for_products<0>();
      finish(second, out + tile_offset(tile + 1));
    }
    show_to_products();
  }
};

}  // namespace resnet
