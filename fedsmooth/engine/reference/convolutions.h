// Forward and backward passes of convolutions and linear layers, as matrix products of patches.
#pragma once

#include "fedsmooth/engine/reference/map.h"

namespace fedsmooth::reference {

/// Returns y[k, p] = bias[k] + sum over taps and channels of weight[k, c, i, j] x[c, p stride + (i,
/// j) - padding]. A linear layer is a convolution whose kernel covers the whole map. `bias` may be
/// empty.
template <typename Number>
Map<Number> convolve(const Layer& layer, const Map<Number>& x, const Values<Number>& weight,
                     const Values<Number>& bias, const Shape& out);
/// Returns the gradient with respect to the input, given that of the output.
template <typename Number>
Map<Number> convolve_back(const Layer& layer, const Map<Number>& dy, const Values<Number>& weight,
                          const Shape& in);
/// Return the gradients with respect to the weights, [K, C, k, k], and the bias, [K].
template <typename Number>
Values<Number> weight_gradient(const Layer& layer, const Map<Number>& x, const Map<Number>& dy);
template <typename Number>
Values<Number> bias_gradient(const Map<Number>& dy);

/// Returns the filters [K, n] that a convolution uses: `weight`, or where the layer standardises
/// (w - mean) / sqrt(sum of (w - mean)^2 + epsilon), see model/standardize.h.
template <typename Number>
Values<Number> filters_of(const Layer& layer, const Values<Number>& weight);
/// Returns the gradient with respect to the weights, given that with respect to the filters.
template <typename Number>
Values<Number> filters_back(const Layer& layer, const Values<Number>& weight,
                            const Values<Number>& gradient);

}  // namespace fedsmooth::reference
