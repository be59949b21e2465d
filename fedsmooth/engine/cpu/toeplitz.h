// Convolution by the schemes in toeplitz_schemes.h: sums of pixels, one matrix product between
// channels for each of them, and sums of the products with what follows, bias, ReLU and pooling.
// Channels are taken 16 at a time with all sums in registers.
//
// A convolution of stride s is one of stride 1 on blocks of s x s pixels taken as channels: kernel
// 11 and stride 4 become kernel 3 on 48 channels.
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

/// How to compute a convolution of maps `in` by a scheme, if one fits. With a stride of 2 or 4 the
/// shape is that of the blocks.
std::optional<ToeplitzShape> toeplitz_shape(const Layer& conv, const Shape& in);

/// A kernel [K, C, k, k] as one [K, D, taps, taps] on blocks, filled up with zeros.
Array block_kernel(const Array& kernel, int64_t stride, const ToeplitzShape& shape);

/// Images [C, H, W] to normalised blocks [n, n, D], starting in the padding of `conv`. `row` is
/// scratch of n * stride + W floats.
void cut_blocks(const Layer& conv, const Shape& in, const ToeplitzShape& shape, const float* x,
                const float* mean, const float* scale, float* row, float* out);

/// The transformed weights [products, C, K] of a kernel [K, C, taps, taps].
Array toeplitz_weights(Scheme scheme, const Array& kernel);

/// Maps [images, n, n, C] to sums [products, images * tiles^2, C], `plane` floats apart.
void toeplitz_inputs(const ToeplitzShape& shape, int64_t images, const float* x, float* sums,
                     int64_t plane);

/// What follows the products: the bias, then ReLU and the maximum over 2x2 pixels if asked; or the
/// bias, the sum with a map of the result's shape, from the same channel on, and then ReLU.
struct ToeplitzEnd {
  const float* bias;
  bool relu, pool;
  const float* saved = nullptr;
};

/// Products [products, images * tiles^2, width], `plane` floats apart, to `width` (16 or 32) of the
/// channels of maps [images, m, m, channels].
void toeplitz_outputs(const ToeplitzShape& shape, int64_t images, const float* products,
                      int64_t plane, int64_t width, const ToeplitzEnd& end, float* out,
                      int64_t channels);

}  // namespace fedsmooth
