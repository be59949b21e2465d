// The linear layer at the end of a network, in float32. Its features are the channels' means over
// all pixels of a row map (row_maps.h), or all values of the map.
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
  int64_t weight = 0, bias = 0;  // offsets in a vector of the weights [class, feature], the biases
  bool has_bias = true;
  bool flat = false;        // the features are all values [pixel, channel], not the means
  float* means = nullptr;   // the features, [client, row, feature]
  float* logits = nullptr;  // [client, row, class]

  FEDSMOOTH_HOST_DEVICE int64_t features() const { return flat ? map.row_size() : map.channels; }
};
/// Computes the features of x, and the logits from them.
cudaError_t answer_rows(Precision precision, const RowHead& head, cudaStream_t stream);

/// Arguments of differentiate_means() and differentiate_linear().
struct RowHeadGradient {
  RowHead head;
  const float* dlogits = nullptr;  // [client, row, class]
  bool mask = false;               // dx is zero where x is not positive
  void* dx = nullptr;              // gradient of head.x
};
/// Computes dx, whether the features are means or all values.
cudaError_t differentiate_means(Precision precision, const RowHeadGradient& g, cudaStream_t stream);
/// Computes the gradients of the linear layer, at its offsets in `gradients` [client, size].
cudaError_t differentiate_linear(const RowHeadGradient& g, float* gradients, cudaStream_t stream);

}  // namespace fedsmooth
