// Convolutions of row maps and their two gradients.
//
// The gradient of a convolution's input is a convolution too: of the output's gradient, with taps
// turned around and channels exchanged; where the convolution had a stride, the gradient's pixels
// lie that far apart, with zeros between them.
#pragma once

#include "fedsmooth/engine/cuda/kernels/rows/row_maps.h"

namespace fedsmooth {

/// y[p, k] = sum over taps t and channels c of weights[t, k, c] z[p stride + t - padding, c], where
/// z is x with its pixels `spread` apart. Then, in this order, where they are given: plus bias,
/// plus `add`, ReLU, nothing where `mask` is not positive.
struct RowConvolution {
  int clients = 0, rows = 0;
  MapShape in, out;
  int kernel = 3, stride = 1, padding = 1, spread = 1;  // one of stride and spread is 1
  const void* x = nullptr;
  const void* weights = nullptr;  // [tap, K, C]
  int64_t weights_client = 0;     // from one client's to the next
  const float* bias = nullptr;
  int64_t bias_client = 0;
  const void *add = nullptr, *mask = nullptr;  // as y
  bool relu = false;
  void* y = nullptr;
  /// [client, part, 2, K]: of y and its squares, as it was rounded; or, if y is the gradient of a
  /// norm of `normed`, of y and y (normed - mean) inverse.
  float* sums = nullptr;
  const void* normed = nullptr;        // as y
  const NormValues* values = nullptr;  // [client, values_client]: the norm's first
  int64_t values_client = 0;
};
cudaError_t convolve_rows(Precision precision, const RowConvolution& c, cudaStream_t stream);
/// Into how many parts the sums of a client are cut.
int convolution_parts(Precision precision, const RowConvolution& c);

/// gradient[t, k, c] = sum over rows and pixels p of dy[p, k] x[p stride + t - padding, c], in
/// `pieces` that are to be added up: [piece, client, gradient_client].
struct RowGradient {
  RowConvolution forward;  // whose kernel it is: shapes and x
  int pieces = 0;
  const void* dy = nullptr;
  float* gradient = nullptr;
  int64_t gradient_client = 0;
};
cudaError_t differentiate_kernel(Precision precision, const RowGradient& g, cudaStream_t stream);
/// Enough to fill a GPU by a client with many rows, or by many clients with a few.
int gradient_pieces(int rows);

}  // namespace fedsmooth
