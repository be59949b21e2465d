// Cells of row maps (row_maps.h), each eight neighbouring channels of a pixel, and slices of
// channels: a block computes one slice.
#pragma once

#include "fedsmooth/engine/cuda/kernels/wave/batched_values.cuh"
#include "fedsmooth/engine/cuda/kernels/wave/map_shape.h"

namespace fedsmooth {

// Returns the width of a slice: the largest of 64, 32 and 16 that divides `channels`, which may
// also be a number of features. A map of at most 64 channels (16, 32 or 64) is one slice.
inline FEDSMOOTH_HOST_DEVICE int slice_width(int64_t channels) {
  return channels % 64 == 0 ? 64 : channels % 32 == 0 ? 32 : 16;
}
inline int slices_of(int64_t channels) {
  return static_cast<int>(channels / slice_width(channels));
}

// Returns the number of cells of a slice, in all rows of a client.
inline FEDSMOOTH_HOST_DEVICE int64_t slice_cells(int rows, const MapShape& map) {
  return static_cast<int64_t>(rows) * map.pixels() * (slice_width(map.channels) / 8);
}

// The cells of a thread in slice blockIdx.z of client blockIdx.y. They are kThreads cells of the
// slice apart, so that all of them have the same eight channels.
struct SliceCells {
  int channel;    // the first of the eight channels
  int64_t count;  // cells of the slice from the thread's first one on
  int64_t step;   // cells of the map between two of the thread's cells
  int64_t first;  // index of the thread's first cell, in the map of all clients

  // `begin`, a multiple of kThreads, is the index in the slice of the block's first cell.
  __device__ SliceCells(int rows, const MapShape& map, int64_t begin) {
    const int width = slice_width(map.channels), eights = width / 8, all = map.channels / 8;
    const int64_t cell = begin + threadIdx.x;
    const int64_t pixel = static_cast<int64_t>(blockIdx.y) * rows * map.pixels() + cell / eights;
    channel = blockIdx.z * width + static_cast<int>(cell % eights) * 8;
    count = slice_cells(rows, map) - cell;
    step = kThreads / eights * all;
    first = pixel * all + channel / 8;
  }
  __device__ bool has(int k) const { return k * kThreads < count; }
  __device__ int64_t at(int k) const { return first + k * step; }
};

// Returns the gradient of a cell of x as it is stored: `gradient`, plus `other` if `adds` is set,
// and zero where x is not positive if `mask` is set.
template <typename T>
__device__ Eight<T> finish_gradient(const float (&gradient)[8], bool adds, const Eight<T>& other,
                                    bool mask, const Eight<T>& x) {
  Eight<T> dx;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    float value = gradient[j];
    if (adds) value += to_float(other.value[j]);
    if (mask && !(to_float(x.value[j]) > 0.0f)) value = 0.0f;
    store(dx.value + j, value);
  }
  return dx;
}

// Returns call(value), where the type of `value` is that of the precision.
template <class Call>
cudaError_t in_precision(Precision precision, const Call& call) {
  return precision == Precision::kBfloat16 ? call(bf16()) : call(0.0f);
}

}  // namespace fedsmooth
