// Convolutions and linear layers, forwards and backwards, as matrix products of patches.
#pragma once

#include "fedsmooth/engine/reference/map.h"

namespace fedsmooth::reference {

/// y[k, p] = bias[k] + sum over taps and channels of weight[k, c, i, j] x[c, p stride + (i, j) -
/// padding]. A linear layer is a convolution whose kernel is the whole map. `bias` may be empty.
template <typename Number>
Map<Number> convolve(const Layer& layer, const Map<Number>& x, const Values<Number>& weight,
                     const Values<Number>& bias, const Shape& out);
/// The input's gradient.
template <typename Number>
Map<Number> convolve_back(const Layer& layer, const Map<Number>& dy, const Values<Number>& weight,
                          const Shape& in);
/// The weights' gradients, [K, C, k, k] and [K].
template <typename Number>
Values<Number> weight_gradient(const Layer& layer, const Map<Number>& x, const Map<Number>& dy);
template <typename Number>
Values<Number> bias_gradient(const Map<Number>& dy);

/// The filters [K, n] that a convolution uses: `weight` itself, or standardised where the layer
/// says so: (w - mean) / sqrt(sum of (w - mean)^2 + epsilon), see model/standardize.h.
template <typename Number>
Values<Number> filters_of(const Layer& layer, const Values<Number>& weight);
/// The weights' gradient from that of the filters.
template <typename Number>
Values<Number> filters_back(const Layer& layer, const Values<Number>& weight,
                            const Values<Number>& gradient);

}  // namespace fedsmooth::reference
