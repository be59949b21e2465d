// Maxima or means over windows of row maps (row_maps.h), and their gradients.
#pragma once

#include "fedsmooth/engine/cuda/kernels/rows/row_maps.h"

namespace fedsmooth {

/// Arguments of pool_rows(). Windows have kernel x kernel pixels, are `stride` apart and lie within
/// the map.
struct RowPool {
  int clients = 0, rows = 0;
  MapShape in, out;  // with the same number of channels
  int kernel = 2, stride = 2;
  bool means = false;  // means in place of maxima
  const void* x = nullptr;
  void* y = nullptr;
};
/// Computes y, the maximum or mean over each window of x. The maximum of a window with a NaN is
/// NaN.
cudaError_t pool_rows(Precision precision, const RowPool& p, cudaStream_t stream);

/// Arguments of differentiate_pool().
struct RowPoolGradient {
  RowPool pool;               // x and y are those of the forward pass
  const void* dy = nullptr;   // gradient of y
  const void* add = nullptr;  // in the shape of x, another gradient of x; may be dx; null: none
  bool mask = false;          // dx is zero where x is not positive
  void* dx = nullptr;
};
/// Computes dx: the gradient of x by this pool, plus `add`, then masked. Among the equal maxima of
/// a window the first receives the gradient, as in the reference.
cudaError_t differentiate_pool(Precision precision, const RowPoolGradient& g, cudaStream_t stream);

}  // namespace fedsmooth
