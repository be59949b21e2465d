// What follows a convolution, in one pass over its map: LibTorch takes one for the bias, one for
// the sum of a residual block and one for ReLU, and each reads and writes the whole map.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace fedsmooth {

/// map + bias + other, cut off below zero if `relu`, rounded once. All are bfloat16.
struct UnfinishedMap {
  void* map = nullptr;          // [row, pixel, channel]
  const void* bias = nullptr;   // [channel], or none
  const void* other = nullptr;  // like the map, or none
  int64_t size = 0;             // values of the map, at most 2^34
  int channels = 0;             // a multiple of 8
  bool relu = false;
};
cudaError_t finish_map(const UnfinishedMap& unfinished, cudaStream_t stream);

}  // namespace fedsmooth
