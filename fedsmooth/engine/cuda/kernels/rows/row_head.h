// The end of a residual network: the mean over all pixels and a linear layer, in float32.
#pragma once

#include "fedsmooth/engine/cuda/kernels/rows/row_maps.h"

namespace fedsmooth {

struct RowHead {
  int clients = 0, rows = 0, classes = 0;
  MapShape map;
  const void* x = nullptr;
  const float* vectors = nullptr;  // [client, size]
  int64_t size = 0;
  int64_t weight = 0, bias = 0;  // [class, channel], [class], at an offset of the vector
  bool has_bias = true;
  float* means = nullptr;   // [client, row, channel]
  float* logits = nullptr;  // [client, row, class]
};
cudaError_t answer_rows(Precision precision, const RowHead& head, cudaStream_t stream);

/// From the gradient of the logits, of head.logits' shape, to that of x: nothing where `mask` is
/// set and x is not positive.
struct RowHeadGradient {
  RowHead head;
  const float* dlogits = nullptr;
  bool mask = false;
  void* dx = nullptr;
};
cudaError_t differentiate_means(Precision precision, const RowHeadGradient& g, cudaStream_t stream);
/// And to those of the linear layer, into `gradients` [client, size].
cudaError_t differentiate_linear(const RowHeadGradient& g, float* gradients, cudaStream_t stream);

}  // namespace fedsmooth
