// 3x3 convolutions of 64 channels on 8 x 8 pixels by products of a warpgroup (wgmma).
//
// Weights are the left factor and stay in registers. The map is the right factor and is read from
// where it is stored. A product computes all 64 channels of a whole map.
#pragma once

#include "fedsmooth/engine/cuda/kernels/stages/residual_maps.cuh"

namespace fedsmooth::residual {

/// An engine for run_layers() whose thread block is one warpgroup.
template <class S>
struct WarpgroupEngine {
  static constexpr int kSteps = 9 * S::kChunks;
  static_assert(S::kChannels == 64 && S::kWidth == 8 && S::kHalo == 1 && S::kWarps == 4 &&
                S::kImages % 2 == 0);

  /// A warp's weights of a layer, for 16 outputs. In memory they are
  /// [layer, warp, dy, dx, chunk of 16 inputs, lane].
  struct Weights {
    uint4 steps[kSteps];  // left factors [16, 16]
    float bias[2];
  };

  uint32_t output;  // offset of the lane's cell in the map's first two rows

  __device__ WarpgroupEngine() {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = lane / 16, plane = warp * 2 + lane / 8 % 2, x = lane % 8;
    output = plane * S::kPlane + (1 + row) * S::kPitch + (x + 1) * 16;
  }

  __device__ void load(Weights& w, const LayerList& layers, int layer) const {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const uint4* from = layers.weights + (static_cast<int64_t>(layer) * 4 + warp) * kSteps * 32;
#pragma unroll
    for (int i = 0; i < kSteps; ++i) w.steps[i] = load_weights(from + i * 32 + lane);
    const float* bias = layers.biases + layer * S::kChannels + warp * 16 + lane / 4;
    w.bias[0] = __ldg(bias);
    w.bias[1] = __ldg(bias + 8);
  }

  template <bool kResidual>
  __device__ void start(float (&sums)[32], const Weights& w, uint32_t out) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // two rows of eight pixels
      Fragment saved;
      if constexpr (kResidual) load_transposed(saved, out + i * 2 * S::kPitch);
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
      store_transposed(out + i * 2 * S::kPitch, f);
    }
  }

  __device__ void multiply(float (&sums)[32], const Weights& w, uint32_t in) const {
    const uint64_t pixels = describe_pixels(in, S::kPlane, S::kPitch);
    begin_products();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int dy = step / (3 * S::kChunks), dx = step / S::kChunks % 3, chunk = step % S::kChunks;
      multiply_add_64x64(sums, w.steps[step],
                         pixels + (dy * S::kPitch + dx * 16 + chunk * 2 * S::kPlane) / 16);
    }
    commit_products();
  }

  /// Computes out = relu(conv(in) + bias), where kResidual adds the old `out` before the ReLU. Two
  /// images are computed at a time: one is finished while the tensor cores work on the other. (If
  /// the loop is unrolled further, ptxas runs out of registers and serialises the products.)
  template <bool kResidual>
  __device__ __forceinline__ void convolve(const Weights& w, uint32_t in, uint32_t out) const {
    out += output;
#pragma unroll 1
    for (int image = 0; image < S::kImages; image += 2, in += 2 * S::kMap, out += 2 * S::kMap) {
      float first[32], second[32];
      start<kResidual>(first, w, out);
      multiply(first, w, in);
      start<kResidual>(second, w, out + S::kMap);
      multiply(second, w, in + S::kMap);
      wait_for_products<1>();
      finish(first, out);
      wait_for_products<0>();
      finish(second, out + S::kMap);
    }
    show_to_products();
  }
};

}  // namespace fedsmooth::residual
