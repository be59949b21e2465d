// Maxima over windows of maps, on the GPU, for all clients of a wave.
#pragma once

#include "fedsmooth/engine/cuda/kernels/pairs/batched_product.h"

namespace fedsmooth {

/// Maximum over windows, and its gradient to the first pixel of each that has it; the latter only
/// where x is positive if a ReLU came before.
struct Pooling {
  int clients = 0, rows = 0, channels = 0, in_pixels = 0, out_pixels = 0;
  DevicePairs windows;     // by output
  DevicePairs windows_of;  // by input
  bool relu = false;
  const void *x = nullptr, *dy = nullptr;
  void *y = nullptr, *dx = nullptr;
};
cudaError_t pool_maps(Precision precision, const Pooling& pooling, cudaStream_t stream);
cudaError_t pool_gradient(Precision precision, const Pooling& pooling, cudaStream_t stream);

}  // namespace fedsmooth
