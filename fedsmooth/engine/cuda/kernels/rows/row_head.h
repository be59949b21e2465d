// The end of a residual network: the mean over all pixels and a linear layer, in float32.
#pragma once

#include "fedsmooth/engine/cuda/kernels/rows/row_maps.h"

namespace fedsmooth {

/// Arguments of answer_rows().
struct RowHead {
  int clients = 0, rows = 0, classes = 0;
  MapShape map;
  const void* x = nullptr;
  const float* vectors = nullptr;  // [client, size]
  int64_t size = 0;
  int64_t weight = 0, bias = 0;  // offsets in a vector of [class, channel] and of [class]
  bool has_bias = true;
  float* means = nullptr;   // [client, row, channel]
  float* logits = nullptr;  // [client, row, class]
};
/// Computes the means over all pixels of x, and from them the logits.
cudaError_t answer_rows(Precision precision, const RowHead& head, cudaStream_t stream);

/// Arguments of differentiate_means() and differentiate_linear().
struct RowHeadGradient {
  RowHead head;
  const float* dlogits = nullptr;  // [client, row, class]
  bool mask = false;
  void* dx = nullptr;  // gradient of head.x
};
/// Computes dx; it is zero where x is not positive if `mask` is set.
cudaError_t differentiate_means(Precision precision, const RowHeadGradient& g, cudaStream_t stream);
/// Computes the gradients of the linear layer, at its offsets in `gradients` [client, size].
cudaError_t differentiate_linear(const RowHeadGradient& g, float* gradients, cudaStream_t stream);

}  // namespace fedsmooth
