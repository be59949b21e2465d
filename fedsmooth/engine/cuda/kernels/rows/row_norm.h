// Batch norm of row maps, with the statistics of each client's own rows, and its gradient. Sums are
// taken in parts that are cut by the map's shape and added up in order, in double.
#pragma once

#include "fedsmooth/engine/cuda/kernels/rows/row_maps.h"

namespace fedsmooth {

/// Into how many parts a map's sums are cut.
int map_parts(int rows, const MapShape& map);

/// sums [client, part, 2, channel] of x and of its squares.
struct MapSums {
  int clients = 0, rows = 0;
  MapShape map;
  const void* x = nullptr;
  float* sums = nullptr;
};
cudaError_t sum_map(Precision precision, const MapSums& sums, cudaStream_t stream);

/// A client's tensors of a norm, each at an offset of its vector.
struct NormWeights {
  float* vectors = nullptr;  // [client, size]
  int64_t size = 0;
  int64_t scale = 0, bias = 0, mean = 0, variance = 0;
};

/// From sums to this pass's values; running statistics move.
struct NormStatistics {
  int clients = 0, rows = 0, parts = 0;
  MapShape map;
  const float* sums = nullptr;
  NormWeights weights;
  NormValues* values = nullptr;  // [client, channels of all norms]: this one's first
  int64_t values_client = 0;
};
cudaError_t take_statistics(const NormStatistics& s, cudaStream_t stream);

/// y = relu(scale x + shift + add), `add` and the ReLU where wanted.
struct NormApply {
  int clients = 0, rows = 0;
  MapShape map;
  const void *x = nullptr, *add = nullptr;
  bool relu = false;
  const NormValues* values = nullptr;
  int64_t values_client = 0;
  void* y = nullptr;
};
cudaError_t apply_norm(Precision precision, const NormApply& apply, cudaStream_t stream);

/// From dy, the gradient of y, and x to dx and the gradients of scale and bias, which go into
/// `gradients` at the weights' offsets. Without `x` there is no norm: only the bias's gradient. The
/// sums are taken here, or (with `parts`) were by the convolution that made dy.
struct NormGradient {
  int clients = 0, rows = 0;
  MapShape map;
  const void *x = nullptr, *dy = nullptr;
  float* sums = nullptr;  // [client, part, 2, channel]: of dy and of dy (x - mean) inverse
  int parts = 0;          // 0: not yet taken
  NormWeights weights;
  float* gradients = nullptr;  // [client, size]
  NormValues* values = nullptr;
  int64_t values_client = 0;
  void* dx = nullptr;
};
cudaError_t differentiate_norm(Precision precision, const NormGradient& g, cudaStream_t stream);
/// From sums that have been taken to the gradients of scale and bias, and to `values` unless null.
cudaError_t add_norm_gradients(const NormGradient& g, cudaStream_t stream);

}  // namespace fedsmooth
