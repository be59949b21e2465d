// Batch norm of row maps (row_maps.h) and its gradient. Statistics are of each client's own rows
// or, in mode kAnswers, the running ones. Sums are computed in parts, whose number depends only on
// the map's shape and the client's number of rows; the parts are added up in a fixed order, in
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

/// The tensors of a norm, as offsets in each client's vector.
struct NormWeights {
  float* vectors = nullptr;  // [client, size]
  int64_t size = 0;
  int64_t scale = 0, bias = 0, mean = 0, variance = 0;
};

/// Arguments of compute_statistics().
struct NormStatistics {
  int clients = 0, rows = 0, parts = 0;
  MapShape map;
  const float* sums = nullptr;  // [client, part, 2, channel]: of the norm's input and its squares
  NormWeights weights;
  NormValues* values = nullptr;  // [client, values_client]: begins with this norm's values
  int64_t values_client = 0;     // number of channels of all norms
};
/// Computes `values` for this pass from the sums, and updates the running statistics.
cudaError_t compute_statistics(const NormStatistics& s, cudaStream_t stream);
/// Computes `values` for a pass in mode kAnswers from the running statistics, which do not change.
/// Sets the means of gradients to zero. Does not read `rows`, `parts` and `sums`.
cudaError_t use_running_statistics(const NormStatistics& s, cudaStream_t stream);

/// Arguments of apply_norm().
struct NormApply {
  int clients = 0, rows = 0;
  MapShape map;
  const void *x = nullptr, *add = nullptr;  // `add` null: none
  bool relu = false;
  const NormValues* values = nullptr;  // of one of the two functions above
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
  int parts = 0;          // number of parts if `sums` are computed already; 0: they are not
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
/// Computes the gradients of scale and bias, at the weights' offsets in `gradients`, and dx: the
/// gradient of x by this norm, plus `add`, then masked. Without x it computes only the gradient of
/// the bias. The gradient at `conv_bias` is zero, because a bias before a batch norm does not
/// change the norm's output.
cudaError_t differentiate_norm(Precision precision, const NormGradient& g, cudaStream_t stream);
/// Computes `sums`, in map_parts() parts.
cudaError_t sum_norm_gradients(Precision precision, const NormGradient& g, cudaStream_t stream);
/// Computes the gradients of scale and bias from `sums`. Unless `values` is null, it also computes
/// the means of gradients in `values` and the gradient at `conv_bias`.
cudaError_t add_norm_gradients(const NormGradient& g, cudaStream_t stream);

}  // namespace fedsmooth
