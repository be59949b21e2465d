// Convolution by the schemes in toeplitz_schemes.h: sums of pixels, one matrix product between
// channels for each sum, and sums of the products, fused with bias, ReLU and pooling. Channels are
// processed 16 at a time with all sums in registers.
//
// A convolution of stride s is a convolution of stride 1 on blocks of s x s pixels taken as
// channels: kernel 11 with stride 4 on 3 channels becomes kernel 3 on 48 channels.
#pragma once

#include <cstdint>
#include <optional>

#include "fedsmooth/base/array.h"
#include "fedsmooth/engine/cpu/toeplitz_schemes.h"
#include "fedsmooth/model/network.h"

namespace fedsmooth {

enum class Scheme { kWhole2, kWhole4, kTile4 };

/// A stride-1 convolution of maps [n, n, channels] by a scheme; the channels are a multiple of 16.
struct ToeplitzShape {
  Scheme scheme;
  int64_t n, padding, channels;

  SchemeSize size() const;
  int64_t products() const;  // in two dimensions
  int64_t tiles() const;     // along an axis
};

/// Returns the scheme by which to compute a convolution of maps `in`, if one fits. With a stride of
/// 2 or 4 the shape is that of the blocks.
std::optional<ToeplitzShape> toeplitz_shape(const Layer& conv, const Shape& in);

/// Converts a kernel [K, C, k, k] to one on blocks, [K, D, taps, taps], padded with zeros.
Array block_kernel(const Array& kernel, int64_t stride, const ToeplitzShape& shape);

/// Converts an image [C, H, W] to normalised blocks [n, n, D], which begin in the padding of
/// `conv`. `row` is scratch memory of n * stride + W floats.
void cut_blocks(const Layer& conv, const Shape& in, const ToeplitzShape& shape, const float* x,
                const float* mean, const float* scale, float* row, float* out);

/// Returns the transformed weights [products, C, K] of a kernel [K, C, taps, taps].
Array toeplitz_weights(Scheme scheme, const Array& kernel);

/// Computes the sums [products, images * tiles^2, C], `plane` floats apart, of maps [images, n, n,
/// C].
void toeplitz_inputs(const ToeplitzShape& shape, int64_t images, const float* x, float* sums,
                     int64_t plane);

/// The operations after the products: the bias, then a ReLU and the maximum over 2x2 pixels if
/// asked for; or the bias, the sum with `saved`, a map laid out like the result that begins at the
/// same channel, and then a ReLU.
struct ToeplitzEnd {
  const float* bias;
  bool relu, pool;
  const float* saved = nullptr;
};

/// Converts products [products, images * tiles^2, width], `plane` floats apart, to `width` (16 or
/// 32) channels of maps [images, m, m, channels].
void toeplitz_outputs(const ToeplitzShape& shape, int64_t images, const float* products,
                      int64_t plane, int64_t width, const ToeplitzEnd& end, float* out,
                      int64_t channels);

}  // namespace fedsmooth
