// 3x3 convolutions by products of a warp (mma.sync), with weights in registers.
//
// A warp computes 16 output channels of 16 neighbouring pixels, for kStripRows rows. It goes down
// the input rows. A fragment of an input row, loaded once for each of three horizontal shifts,
// serves the three output rows to which it contributes, whose sums are in registers.
#pragma once

#include "fedsmooth/engine/cuda/kernels/stages/residual_maps.cuh"

namespace fedsmooth::residual {

/// How warps share the map out. A warp that computes a whole column needs no halo, because it skips
/// the rows beyond the map.
template <int kStage, int kStripRowsOf, int kResident>
struct Strips
    : Layout<kStage, (kStripRowsOf < side_of(kStage)), 1,
             channels_of(kStage) / 16 * (side_of(kStage) / 16) * (side_of(kStage) / kStripRowsOf),
             kResident> {
  static constexpr int kStripRows = kStripRowsOf;
  static constexpr int kTiles = Strips::kWidth / 16;  // number of tiles in a row
};

/// The part of the map that a warp and a lane compute.
template <class S>
struct Place {
  int block;        // number of the block of 16 output channels
  uint32_t input;   // offset of the cell left of the lane's in the first row
  uint32_t output;  // offset of the lane's cell in the result

  __device__ Place() {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    block = warp % S::kChunks;
    const int tile = warp / S::kChunks % S::kTiles, strip = warp / (S::kChunks * S::kTiles);
    input = lane / 16 * S::kPlane + (strip * S::kStripRows + S::kHalo) * S::kPitch +
            (tile * 16 + lane % 16) * 16;
    output = input + 16 + block * 2 * S::kPlane;
  }
};

inline __device__ void load_bias(float2 (&bias)[2], const float* from) {
  from += threadIdx.x % 4 * 2;
#pragma unroll
  for (int n = 0; n < 2; ++n) bias[n] = {__ldg(from + 8 * n), __ldg(from + 8 * n + 1)};
}

/// The weights of 16 outputs of a layer: the right factors of all products, and the bias. In memory
/// they are [layer, block of 16 outputs, chunk of 16 inputs, dx, dy, lane].
template <class S>
struct LayerWeights {
  uint4 taps[9 * S::kChunks];  // two factors [16, 8] each
  float2 bias[2];

  __device__ void load(const LayerList& layers, int layer, int block) {
    const int lane = threadIdx.x % 32;
    const uint4* from =
        layers.weights + static_cast<int64_t>(layer * S::kChunks + block) * 9 * S::kChunks * 32;
#pragma unroll
    for (int i = 0; i < 9 * S::kChunks; ++i) taps[i] = load_weights(from + i * 32 + lane);
    load_bias(bias, layers.biases + layer * S::kChannels + block * 16);
  }
};

/// A lane's part of the sums of 16 pixels x 16 channels.
struct Sums {
  float v[2][4];

  __device__ void start(const float2 (&bias)[2]) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      v[n][0] = v[n][2] = bias[n].x;
      v[n][1] = v[n][3] = bias[n].y;
    }
  }
  __device__ void start(const float2 (&bias)[2], const Fragment& saved) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint32_t pair = saved.v[2 * n + half];
        v[n][2 * half] = low_half(pair) + bias[n].x;
        v[n][2 * half + 1] = high_half(pair) + bias[n].y;
      }
    }
  }
  __device__ void add(const Fragment& a, const uint4& b) {
    multiply_add(v[0], a, b.x, b.y);
    multiply_add(v[1], a, b.z, b.w);
  }
  template <bool kRelu>
  __device__ Fragment packed() const {
    return {{pack<kRelu>(v[0][0], v[0][1]), pack<kRelu>(v[0][2], v[0][3]),
             pack<kRelu>(v[1][0], v[1][1]), pack<kRelu>(v[1][2], v[1][3])}};
  }
};

/// Computes out = relu(conv(in) + bias), where kResidual adds the old `out` before the ReLU. All
/// indices are constants once the loops are unrolled.
template <class S, bool kResidual>
__device__ __forceinline__ void convolve_strip(const LayerWeights<S>& w, uint32_t in,
                                               uint32_t out) {
  constexpr int kFirst = -S::kHalo, kEnd = S::kStripRows + S::kHalo;
  constexpr int kTaps = 3 * S::kChunks, kSteps = (kEnd - kFirst) * kTaps;
  constexpr int kRing = 3;  // fragments in flight, for the latency of shared memory
  Sums sums[3];
  Fragment ring[kRing], saved[2];

  const auto fetch = [&](int step) {
    const int row = kFirst + step / kTaps, chunk = step % kTaps / 3, dx = step % 3;
    load_fragment(ring[step % kRing], in + row * S::kPitch + chunk * 2 * S::kPlane + dx * 16);
  };
  const auto fetch_saved = [&](int row) {
    if (!kResidual || row >= S::kStripRows) return;
    load_fragment(saved[row % 2], out + row * S::kPitch);
  };
  const auto start = [&](int row) {
    if (row >= S::kStripRows) return;
    if constexpr (kResidual) {
      sums[row % 3].start(w.bias, saved[row % 2]);
    } else {
      sums[row % 3].start(w.bias);
    }
    fetch_saved(row + 2);
  };
  const auto finish = [&](int row) {
    if (row < 0) return;
    store_fragment(out + row * S::kPitch, sums[row % 3].template packed<true>());
  };

  fetch_saved(0);
  fetch_saved(1);
#pragma unroll
  for (int step = 0; step < kRing - 1; ++step) fetch(step);
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const int row = kFirst + step / kTaps, tap = step % kTaps;
    if (step == 0 && kFirst == 0) start(0);
    if (tap == 0) start(row + 1);
    if (step + kRing - 1 < kSteps) fetch(step + kRing - 1);
#pragma unroll
    for (int dy = 0; dy < 3; ++dy) {
      const int to = row + 1 - dy;
      if (to < 0 || to >= S::kStripRows) continue;
      sums[to % 3].add(ring[step % kRing], w.taps[tap * 3 + dy]);
    }
    if (tap == kTaps - 1) finish(row - 1);
  }
  if (S::kHalo == 0) finish(S::kStripRows - 1);
}

/// An engine for run_layers() that computes by convolve_strip().
template <class S>
struct StripEngine {
  using Weights = LayerWeights<S>;
  Place<S> place;

  __device__ void load(Weights& w, const LayerList& layers, int layer) const {
    w.load(layers, layer, place.block);
  }
  template <bool kResidual>
  __device__ __forceinline__ void convolve(const Weights& w, uint32_t in, uint32_t out) const {
    convolve_strip<S, kResidual>(w, in + place.input, out + place.output);
  }
};

}  // namespace fedsmooth::residual
