// Bias, the sum of a residual block and ReLU after a convolution, in one pass over its map.
// LibTorch needs a pass for each of them, and each reads and writes the whole map.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace fedsmooth {

/// The arguments of finish_map(). All maps are bfloat16, in the GPU's memory.
struct UnfinishedMap {
  void* map = nullptr;          // [row, pixel, channel], overwritten by the result
  const void* bias = nullptr;   // [channel]; null: none
  const void* other = nullptr;  // in the shape of the map; null: none
  int64_t size = 0;             // number of values in the map, at most 2^34
  int channels = 0;             // a multiple of 8
  bool relu = false;
};
/// Replaces the map by map + bias + other, or by 0 where that is negative if `relu` is set, rounded
/// once. Enqueues the work on the stream and does not wait; returns the launch's status.
cudaError_t finish_map(const UnfinishedMap& unfinished, cudaStream_t stream);

}  // namespace fedsmooth
