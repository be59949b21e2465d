// Batch norm of row maps (row_maps.h) by the statistics of each client's own rows, and its
// gradient. Sums are computed in parts, which are cut by the map's shape and added up in order, in
// double.
#pragma once

#include "fedsmooth/engine/cuda/kernels/rows/row_maps.h"

namespace fedsmooth {

/// Returns the number of parts of a client's sums by sum_map().
int map_parts(int rows, const MapShape& map);

/// Arguments of sum_map().
struct MapSums {
  int clients = 0, rows = 0;
  MapShape map;
  const void* x = nullptr;
  float* sums = nullptr;  // [client, part, 2, channel]
};
/// Computes the sums of x and of its squares, for each channel.
cudaError_t sum_map(Precision precision, const MapSums& sums, cudaStream_t stream);

/// The tensors of a norm, as offsets in a client's vector.
struct NormWeights {
  float* vectors = nullptr;  // [client, size]
  int64_t size = 0;
  int64_t scale = 0, bias = 0, mean = 0, variance = 0;
};

/// Arguments of compute_statistics().
struct NormStatistics {
  int clients = 0, rows = 0, parts = 0;
  MapShape map;
  const float* sums = nullptr;  // [client, part, 2, channel], of the norm's input and its squares
  NormWeights weights;
  NormValues* values = nullptr;  // [client, values_client]: begins with this norm's values
  int64_t values_client = 0;     // number of channels of all norms
};
/// Computes this pass's values from the sums, and updates the running statistics.
cudaError_t compute_statistics(const NormStatistics& s, cudaStream_t stream);
/// Computes the values of a pass in mode kAnswers, from the running statistics, which stay as they
/// are. Means of gradients are zero. Does not read `rows`, `parts` and `sums`.
cudaError_t use_running_statistics(const NormStatistics& s, cudaStream_t stream);

/// Arguments of apply_norm().
struct NormApply {
  int clients = 0, rows = 0;
  MapShape map;
  const void *x = nullptr, *add = nullptr;  // `add` null: none
  bool relu = false;
  const NormValues* values = nullptr;  // of either function above
  int64_t values_client = 0;
  void* y = nullptr;
};
/// Computes y = scale x + shift + add, with a ReLU if `relu` is set.
cudaError_t apply_norm(Precision precision, const NormApply& apply, cudaStream_t stream);

/// Arguments of differentiate_norm(), sum_norm_gradients() and add_norm_gradients().
struct NormGradient {
  int clients = 0, rows = 0;
  MapShape map;
  const void *x = nullptr, *dy = nullptr;  // x null: there is no norm, only a bias
  float* sums = nullptr;  // [client, part, 2, channel]: of dy and of dy (x - mean) inverse
  int parts = 0;          // of sums that a convolution has computed; 0: none has
  NormWeights weights;
  float* gradients = nullptr;    // [client, size]
  NormValues* values = nullptr;  // of compute_statistics()
  int64_t values_client = 0;
  void* dx = nullptr;
  const void* add = nullptr;  // in the shape of x, another gradient of x; may be dx; null: none
  bool mask = false;          // dx is zero where x is not positive
  bool answers = false;       // `values` are of use_running_statistics(): only dx is computed
  int64_t conv_bias = -1;     // offset of the bias of the convolution before the norm; -1: none
};
/// Computes the gradients of scale and bias, at the weights' offsets in `gradients`, and dx, to
/// which it adds `add` before it applies the mask. Without x it computes only the bias's gradient.
/// A bias before a batch norm does not change the norm's output, so that its gradient is zero.
cudaError_t differentiate_norm(Precision precision, const NormGradient& g, cudaStream_t stream);
/// Computes `sums`, with map_parts() parts.
cudaError_t sum_norm_gradients(Precision precision, const NormGradient& g, cudaStream_t stream);
/// Computes the gradients of scale and bias from `sums` and, unless `values` is null, its means and
/// the gradient of the convolution's bias.
cudaError_t add_norm_gradients(const NormGradient& g, cudaStream_t stream);

}  // namespace fedsmooth
