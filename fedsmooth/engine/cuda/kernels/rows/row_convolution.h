// Convolutions of row maps (row_maps.h) and their two gradients.
//
// The gradient with respect to a convolution's input is a convolution too: of the output's
// gradient, with taps turned around and channels exchanged. If the convolution has a stride, the
// gradient's pixels are that far apart, with zeros between them.
#pragma once

#include <utility>

#include "fedsmooth/engine/cuda/kernels/rows/row_maps.h"

namespace fedsmooth {

/// Arguments of convolve_rows().
struct RowConvolution {
  int clients = 0, rows = 0;
  MapShape in, out;
  int kernel = 3, stride = 1, padding = 1, spread = 1;  // one of stride and spread is 1
  bool wide = false;                                    // by the kernels of wide_convolution.h
  bool portable = false;  // by those for every GPU, also where there are kernels for Hopper
  const void* x = nullptr;
  const void* weights = nullptr;               // [tap, K, C]
  int64_t weights_client = 0;                  // stride from one client's weights to the next
  const float* bias = nullptr;                 // [K]; null: none
  int64_t bias_client = 0;                     // stride from one client's bias to the next
  const void *add = nullptr, *mask = nullptr;  // in the shape of y; null: none
  bool relu = false;
  void* y = nullptr;
  /// [client, part, 2, K]: sums over pixels of y, as rounded, and of its squares; with `normed`, of
  /// y and of y (normed - mean) inverse. Null: not wanted.
  float* sums = nullptr;
  const void* normed = nullptr;  // in the shape of y: input of the norm whose output has gradient y
  const NormValues* values = nullptr;  // [client, values_client]: begins with the norm's values
  int64_t values_client = 0;
};
/// Computes y[p, k] = sum over taps t and channels c of weights[t, k, c] z[p stride + t - padding,
/// c], where z is x with its pixels `spread` apart. Then, in this order, adds the bias, adds `add`,
/// applies ReLU, and sets y to zero where `mask` is not positive.
cudaError_t convolve_rows(Precision precision, const RowConvolution& c, cudaStream_t stream);
/// Returns the number of parts in RowConvolution::sums.
int convolution_parts(Precision precision, const RowConvolution& c);

/// Returns the shapes of the convolution that maps the gradient of a convolution's output to that
/// of its input.
inline RowConvolution backward_of(RowConvolution forward) {
  std::swap(forward.in, forward.out);
  forward.spread = std::exchange(forward.stride, 1);
  forward.padding = forward.kernel - 1 - forward.padding;
  return forward;
}

/// Arguments of differentiate_kernel().
struct RowGradient {
  RowConvolution forward;  // the convolution, of which shapes and x are read
  int pieces = 0;
  const void* dy = nullptr;   // gradient of its output
  float* gradient = nullptr;  // [piece, client, gradient_client], each [t, k, c] at its beginning
  int64_t gradient_client = 0;
  float* room = nullptr;  // of a wide convolution's gradient, see wide_gradient_room()
};
/// Computes gradient[t, k, c] = sum over rows and pixels p of dy[p, k] x[p stride + t - padding,
/// c], in `pieces` parts that the caller adds up. A wide convolution's gradient is in one piece.
cudaError_t differentiate_kernel(Precision precision, const RowGradient& g, cudaStream_t stream);
/// Returns a number of pieces that fills a GPU by one client with many rows, or by many clients
/// with few rows.
int gradient_pieces(int rows);

/// Return whether thread blocks with `limit` bytes of shared memory can run convolve_rows() and
/// differentiate_kernel() in bfloat16. If not, the map's lines are too long or too many, and the
/// convolution has to be `wide`.
bool convolution_fits(const RowConvolution& c, int limit);
bool kernel_gradient_fits(const RowConvolution& forward, int limit);

}  // namespace fedsmooth
