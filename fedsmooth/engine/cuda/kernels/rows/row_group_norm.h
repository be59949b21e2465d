// Group norm of row maps (row_maps.h) and its gradient. Each row's groups of channels have
// statistics of their own, summed in float32 in a fixed order, so that a row's bits depend on no
// other row.
#pragma once

#include "fedsmooth/engine/cuda/kernels/rows/row_norm.h"

namespace fedsmooth {

/// Statistics of the group of one channel, in one row; zeros for a channel that only fills up.
struct GroupValues {
  float mean, inverse;  // 1 / sqrt(variance + epsilon)
};

/// Arguments of apply_group_norm().
struct GroupNorm {
  int clients = 0, rows = 0;
  MapShape map;
  ChannelGroups groups;
  const void *x = nullptr, *add = nullptr;  // `add` null: none
  bool relu = false;
  NormWeights weights;
  GroupValues* values = nullptr;  // [client, row, channel]; null: not wanted
  void* y = nullptr;              // may be x
};
/// Computes y = norm(x) + add, with a ReLU if `relu` is set, and `values`.
cudaError_t apply_group_norm(Precision precision, const GroupNorm& n, cudaStream_t stream);

/// Arguments of differentiate_group_norm().
struct GroupNormGradient {
  int clients = 0, rows = 0;
  MapShape map;
  ChannelGroups groups;
  const void *x = nullptr, *dy = nullptr;  // dy: gradient of norm(x)
  NormWeights weights;
  const GroupValues* values = nullptr;  // of apply_group_norm()
  float* sums = nullptr;  // [client, row, 2, channel], see NormGradient; null: not wanted
  void* dx = nullptr;
  const void* add = nullptr;  // in the shape of x, another gradient of x; may be dx; null: none
  bool mask = false;          // dx is zero where x is not positive
};
/// Computes dx: the gradient of x by this norm, plus `add`, then masked. Also computes `sums`, with
/// one part for each row, from which add_norm_gradients() computes the gradients of scale and bias.
/// For the bias of a convolution before the norm, call differentiate_norm() with dx as its dy and
/// without x.
cudaError_t differentiate_group_norm(Precision precision, const GroupNormGradient& g,
                                     cudaStream_t stream);

}  // namespace fedsmooth
