// The maps of a stage of a residual network in shared memory, and its layers one after another.
//
// A map consists of planes of eight channels. A plane has rows of kWidth + 1 cells of 16 bytes
// (eight channels of a pixel). The one extra cell is zero: it is both the right border of its row
// and the left border of the next. Eight neighbouring pixels are 128 bytes, so that there are no
// bank conflicts, whatever the shift.
#pragma once

#include <type_traits>

#include "fedsmooth/engine/cuda/kernels/stages/residual_votes.h"
#include "fedsmooth/engine/cuda/kernels/tensor_cores/residual_ops.cuh"

namespace fedsmooth::residual {

/// The maps of a thread block in stage kStage.
template <int kStage, int kHaloOf, int kImagesOf, int kWarpsOf, int kResidentOf>
struct Layout {
  static constexpr int kChannels = channels_of(kStage), kWidth = side_of(kStage);
  static constexpr int kHalo = kHaloOf;      // number of rows of zeros above and below
  static constexpr int kImages = kImagesOf;  // number of images of a thread block
  static constexpr int kWarps = kWarpsOf, kThreads = 32 * kWarps;
  static constexpr int kResident = kResidentOf;  // thread blocks on a multiprocessor
  static constexpr int kGroups = kChannels / 8, kChunks = kChannels / 16;
  static constexpr int kPitch = 16 * (kWidth + 1);
  static constexpr int kPlaneRows = kWidth + 2 * kHalo;
  static constexpr int kPlane = kPlaneRows * kPitch + 16;
  static constexpr int kMap = kGroups * kPlane;
  static constexpr int kMaps = kImages * kMap;
};

/// Computes all layers, from x to x. kInside: the stage begins inside a block, and the first layer
/// reads h. The first weights are loaded while ready() waits for the maps. kPrefetch: a layer's
/// weights are loaded during the layer before, not after it, which needs twice the registers.
template <class Engine, bool kInside, bool kPrefetch, class Ready>
__device__ __forceinline__ void run_layers(const LayerList& layers, uint32_t x, uint32_t h,
                                           const Ready& ready) {
  const Engine engine;
  typename Engine::Weights w;
  engine.load(w, layers, 0);
  ready();
  const auto step = [&](int layer, auto residual) {
    constexpr bool kResidual = decltype(residual)::value;
    const uint32_t in = kResidual ? h : x, out = kResidual ? x : h;
    const int after = min(layer + 1, layers.count - 1);
    if constexpr (kPrefetch) {
      typename Engine::Weights next;
      engine.load(next, layers, after);
      engine.template convolve<kResidual>(w, in, out);
      w = next;
    } else {
      engine.template convolve<kResidual>(w, in, out);
      engine.load(w, layers, after);
    }
    __syncthreads();
  };
  int layer = 0;
  if constexpr (kInside) step(layer++, std::true_type{});
#pragma unroll 1
  while (layer < layers.count) {
    step(layer++, std::false_type{});
    step(layer++, std::true_type{});
  }
}

/// Sets the cells of a map that no layer writes to zero.
template <class S>
__device__ void clear_borders(uint32_t map) {
  constexpr int kColumn = S::kPlaneRows + 1, kRow = S::kHalo * S::kWidth;
  constexpr int kCells = kColumn + 2 * kRow;
  for (int i = threadIdx.x; i < S::kGroups * kCells; i += S::kThreads) {
    const int cell = i % kCells;
    int at = cell * (S::kWidth + 1);
    if (cell >= kColumn) at = cell - kColumn + 1;  // the row above
    if (cell >= kColumn + kRow) at += (S::kPlaneRows - 1) * (S::kWidth + 1) - kRow;
    store_zero_16(map + i / kCells * S::kPlane + at * 16);
  }
}

/// Starts the copy of a map from device memory, where it is [group of 8 channels, y, x] in cells of
/// 16 bytes.
template <class S>
__device__ void load_map(uint32_t map, const uint4* from) {
  constexpr int kArea = S::kWidth * S::kWidth;
#pragma unroll 8
  for (int i = threadIdx.x; i < S::kGroups * kArea; i += S::kThreads) {
    const int y = i % kArea / S::kWidth, x = i % S::kWidth;
    copy_16_bytes(map + i / kArea * S::kPlane + (y + S::kHalo) * S::kPitch + (x + 1) * 16,
                  from + i);
  }
}

/// Starts copies of the thread block's maps from the stage before, and clears their borders.
template <class S>
__device__ void load_maps(uint32_t x, uint32_t h, const Transition& from) {
  constexpr int kCells = S::kGroups * S::kWidth * S::kWidth;
  const auto* x_in = reinterpret_cast<const uint4*>(from.x);
  const auto* h_in = reinterpret_cast<const uint4*>(from.h);
#pragma unroll 1
  for (int i = 0; i < S::kImages; ++i) {
    const int64_t row = int64_t{blockIdx.x} * S::kImages + i;
    load_map<S>(h + i * S::kMap, h_in + kCells * row);
    load_map<S>(x + i * S::kMap, x_in + kCells * row);
    clear_borders<S>(x + i * S::kMap);
    clear_borders<S>(h + i * S::kMap);
  }
}

inline __device__ void wait_for_maps() {
  wait_for_copies();
  show_to_products();
  __syncthreads();
}

}  // namespace fedsmooth::residual
