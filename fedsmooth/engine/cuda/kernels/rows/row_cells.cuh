// Cells of eight neighbouring channels of row maps, and the slices of channels that blocks share
// out.
#pragma once

#include "fedsmooth/engine/cuda/kernels/wave/batched_values.cuh"
#include "fedsmooth/engine/cuda/kernels/wave/map_shape.h"

namespace fedsmooth {

// Returns the number of channels of a slice: a power of two from 16 to 64 that divides `channels`,
// or any other number of values. At most 64 channels are one slice.
inline FEDSMOOTH_HOST_DEVICE int slice_width(int64_t channels) {
  return channels % 64 == 0 ? 64 : channels % 32 == 0 ? 32 : 16;
}
inline int slices_of(int64_t channels) {
  return static_cast<int>(channels / slice_width(channels));
}

// Returns the cells of a slice, in all rows of a client.
inline FEDSMOOTH_HOST_DEVICE int64_t slice_cells(int rows, const MapShape& map) {
  return static_cast<int64_t>(rows) * map.pixels() * (slice_width(map.channels) / 8);
}

// The cells of a thread in a slice of its block's client, kThreads cells of the slice apart, so
// that they have the same channels. The slice is blockIdx.z, the client blockIdx.y.
struct SliceCells {
  int channel;          // the first of the eight channels
  int64_t count, step;  // of the slice's cells from the first on; from cell to cell of the map
  int64_t first;

  // `begin`, a multiple of kThreads, is the block's first cell of the slice.
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

// Returns the gradient of a cell of x as it is written: with `other` added if `adds` is set, and,
// if `mask` is set, zero where x is not positive.
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

// Returns call(value) for a value of the precision's type.
template <class Call>
cudaError_t in_precision(Precision precision, const Call& call) {
  return precision == Precision::kBfloat16 ? call(bf16()) : call(0.0f);
}

}  // namespace fedsmooth
