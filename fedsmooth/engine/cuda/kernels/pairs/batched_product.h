// The matrix products of pair_lists.h on the GPU, for many clients at once: each client has maps
// and weights of its own. In this folder, functions enqueue kernels on a stream and return the
// launch's status; pointers are to device memory, and nothing allocates.
//
// A result's bits depend on its own client alone: tiles are cut by the shape of the layer, sums are
// in a fixed order, and nothing is added atomically.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "fedsmooth/engine/cuda/kernels/wave/client_settings.h"

namespace fedsmooth {

/// The results of which a layer's pairs are summands: its output, or one of its gradients.
enum class Side { kForward, kMapGradient, kWeightGradient };

/// How a thread block computes its sums.
struct Tiling {
  bool hopper = false;  // by hopper_product.cu
  int results = 1;      // number of results of a block, 64 x 64 values each
  int depth = 16;       // depth of a piece of the sums
  int stages = 2;       // number of pieces in shared memory
  int items = 2;        // maximum number of tiles in a piece
};

/// Returns the fastest known tiling on the current GPU for `results` results with `pairs` pairs in
/// all.
Tiling choose_tiling(Side side, int results, int pairs);
/// Returns a tiling whose kernels run on every GPU.
Tiling portable_tiling(Side side, int results);

/// A view of pair lists on the device: the lists, their PairGroups for the tiling, and PairSteps.
struct DevicePairs {
  int results = 0;
  const int* first = nullptr;  // [results + 1]: first pair of each result
  const int2* pairs = nullptr;

  Tiling tiling;
  int groups = 0, most_items = 0;
  const int* order = nullptr;
  const int* chunk_first = nullptr;
  const int *items = nullptr, *item_first = nullptr, *lefts = nullptr;
  const int2* places = nullptr;
  const int* place_first = nullptr;

  int step_count = 0;  // 0: there are no PairSteps
  const int2* steps = nullptr;
  const int* step_first = nullptr;
};
/// Stands for the left side of a result that has no pair in a step.
constexpr int kNoLeft = 0xFF;
/// Bounds of the number of a square's steps in a chunk. Each lane of a warp has one.
constexpr int kFewestSteps = 3, kMostSteps = 32;

/// Arguments of multiply_maps(). Maps are [client, pixel, row, channel], kernels [tap, C, K]; rows
/// must be a multiple of 64, channels of 16.
struct MapProduct {
  bool gradient = false;
  int clients = 0, rows = 0;
  int depth = 0, columns = 0;  // channels of the left side and of the result
  const void* left = nullptr;  // x, or dy for a gradient
  const void* kernel = nullptr;
  int64_t kernel_client = 0;  // stride from one client's kernel to the next
  DevicePairs pairs;
  int left_pixels = 0, taps = 0;
  void* out = nullptr;         // in `precision`
  float* out_float = nullptr;  // if not null, the result goes here instead
  const float* bias = nullptr;
  int64_t bias_client = 0;  // stride from one client's bias to the next
  bool relu = false;
  const void* mask = nullptr;  // in the shape of the result; null: none
  /// The number of squares of 2x2 pixels in a row of the map; 0: no maxima. A product then writes
  /// only the maximum of each square, and to `choice` (null: not wanted) which of the four pixels
  /// has it, or kNoChoice if it passes no gradient on. A gradient with respect to such maxima is
  /// written as the gradient of the map before them. Only for Hopper's tilings.
  int pool_columns = 0;
  uint8_t* choice = nullptr;
};
constexpr uint8_t kNoChoice = 4;
/// Computes y[o] = sum of x[i] w[t], then adds the bias and applies ReLU. If `gradient` is set it
/// computes dx[i] = sum of dy[o] w[t]^T, and sets it to zero where `mask` is not positive.
cudaError_t multiply_maps(Precision precision, const MapProduct& product, cudaStream_t stream);
/// Computes multiply_maps() in bfloat16 by Hopper's kernel for many rows, even if there are few;
/// for tests. Returns cudaErrorNotSupported if that kernel cannot compute the product.
cudaError_t multiply_many_rows(const MapProduct& product, cudaStream_t stream);

}  // namespace fedsmooth
