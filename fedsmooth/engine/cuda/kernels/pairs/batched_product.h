// The matrix products of pair_lists.h on the GPU, for many clients at once: each client has maps
// and weights of its own. Launchers take device pointers and a stream; nothing here allocates.
//
// A result's bits depend on its own client alone: tiles are cut by the shape of the layer, sums run
// in one order, and nothing is added atomically.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "fedsmooth/engine/cuda/kernels/wave/client_settings.h"

namespace fedsmooth {

/// What a layer's pairs are summed up to.
enum class Side { kForward, kMapGradient, kWeightGradient };

/// How a block of threads goes about its sums.
struct Tiling {
  bool hopper = false;  // by hopper_product.cu
  int results = 1;      // of a block, 64 x 64 values each
  int depth = 16;       // of a piece of the sums
  int stages = 2;       // pieces in shared memory
  int items = 2;        // tiles of a piece, at most
};

/// The best tiling known for `results` with so many pairs together, on this GPU.
Tiling choose_tiling(Side side, int results, int pairs);
/// One that every GPU has.
Tiling portable_tiling(Side side, int results);

/// Pair lists on the device: as they are, as PairGroups for the tiling, and as PairSteps.
struct DevicePairs {
  int results = 0;
  const int* first = nullptr;  // [results + 1], into pairs
  const int2* pairs = nullptr;

  Tiling tiling;
  int groups = 0, most_items = 0;
  const int* order = nullptr;
  const int* chunk_first = nullptr;
  const int *items = nullptr, *item_first = nullptr, *lefts = nullptr;
  const int2* places = nullptr;
  const int* place_first = nullptr;

  int step_count = 0;  // 0: there are none
  const int2* steps = nullptr;
  const int* step_first = nullptr;
};
/// In place of a left side, where a result has no pair in a step.
constexpr int kNoLeft = 0xFF;
constexpr int kFewestSteps = 3, kMostSteps = 32;  // of a chunk; a warp's lanes hold them

/// y[o] = sum of x[i] w[t], with the bias and ReLU; or, if `gradient` is set, dx[i] = sum of
/// dy[o] w[t]^T, where `mask` is positive. Maps are [pixel, row, channel], kernels [tap, C, K];
/// rows are a multiple of 64, channels of 16.
struct MapProduct {
  bool gradient = false;
  int clients = 0, rows = 0;
  int depth = 0, columns = 0;  // channels of the left side and of the result
  const void* left = nullptr;
  const void* kernel = nullptr;
  int64_t kernel_client = 0;  // from one client's kernel to the next
  DevicePairs pairs;
  int left_pixels = 0, taps = 0;
  void* out = nullptr;         // in the working precision
  float* out_float = nullptr;  // instead, if set
  const float* bias = nullptr;
  int64_t bias_client = 0;
  bool relu = false;
  const void* mask = nullptr;
  /// If not 0, how many squares of 2x2 pixels a row of the map has. A product then writes only the
  /// maximum of each square, and in `choice` (null: not wanted) which of the four it is, or
  /// kNoChoice if it passes no gradient on. A gradient of such maxima is written as that of the
  /// map. Only for tilings by Hopper.
  int pool_columns = 0;
  uint8_t* choice = nullptr;
};
constexpr uint8_t kNoChoice = 4;
cudaError_t multiply_maps(Precision precision, const MapProduct& product, cudaStream_t stream);
/// The same in bfloat16 by Hopper's kernel for many rows, however few there are: for tests.
/// cudaErrorNotSupported where it does not apply.
cudaError_t multiply_many_rows(const MapProduct& product, cudaStream_t stream);

}  // namespace fedsmooth
