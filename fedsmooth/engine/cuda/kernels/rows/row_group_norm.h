// Group norm of row maps, and its gradient: statistics of each row's groups of channels, in float32
// and in one order, so that a row's bits depend on nothing else.
#pragma once

#include "fedsmooth/engine/cuda/kernels/rows/row_norm.h"

namespace fedsmooth {

/// Of a row's channel: its group's; zeros for a channel that fills up.
struct GroupValues {
  float mean, inverse;  // 1 / sqrt(variance + epsilon)
};

/// y = relu(norm(x) + add), `add` and the ReLU where wanted. y may be x.
struct GroupNorm {
  int clients = 0, rows = 0;
  MapShape map;
  ChannelGroups groups;
  const void *x = nullptr, *add = nullptr;
  bool relu = false;
  NormWeights weights;
  GroupValues* values = nullptr;  // [client, row, channel], unless null
  void* y = nullptr;
};
cudaError_t apply_group_norm(Precision precision, const GroupNorm& n, cudaStream_t stream);

/// From dy, the gradient of the norm's result, and x to dx; and to sums that become the gradients
/// of scale and bias by add_norm_gradients(), a part a row.
struct GroupNormGradient {
  int clients = 0, rows = 0;
  MapShape map;
  ChannelGroups groups;
  const void *x = nullptr, *dy = nullptr;
  NormWeights weights;
  const GroupValues* values = nullptr;
  float* sums = nullptr;  // [client, row, 2, channel], as NormGradient's; null: not wanted
  void* dx = nullptr;
};
cudaError_t differentiate_group_norm(Precision precision, const GroupNormGradient& g,
                                     cudaStream_t stream);

}  // namespace fedsmooth
