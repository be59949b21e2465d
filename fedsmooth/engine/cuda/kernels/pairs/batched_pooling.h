// Maxima over windows of maps and their gradients, on the GPU, for all clients of a wave. Functions
// enqueue a kernel on the stream and return the launch's status; pointers are to device memory.
#pragma once

#include "fedsmooth/engine/cuda/kernels/pairs/batched_product.h"

namespace fedsmooth {

/// Arguments of pool_maps() and pool_gradient(). Maps are [client, pixel, row, channel].
struct Pooling {
  int clients = 0, rows = 0, channels = 0, in_pixels = 0, out_pixels = 0;
  DevicePairs windows;     // for each output pixel, the input pixels of its window
  DevicePairs windows_of;  // for each input pixel, the output pixels whose windows have it
  bool relu = false;       // a ReLU came before
  const void *x = nullptr, *dy = nullptr;
  void *y = nullptr, *dx = nullptr;
};
/// Computes y, the maximum over each window of x; NaN wins.
cudaError_t pool_maps(Precision precision, const Pooling& pooling, cudaStream_t stream);
/// Computes dx from x, y and dy. Each window's gradient goes to its first pixel that has the
/// maximum; with `relu` only if that is positive.
cudaError_t pool_gradient(Precision precision, const Pooling& pooling, cudaStream_t stream);

}  // namespace fedsmooth
