// Forward and backward passes of every kind of layer, in plain loops over maps [B, C, H, W]. Faster
// engines are tested against them. In float they are the engine for layers that no other engine
// knows; in double they are tested by finite differences. Sums are in double either way, except in
// convolutions. Layers with weights are in convolutions.h and norms.h. A function NAME_back returns
// the gradient with respect to the input of NAME, given that of its output, dy.
#pragma once

#include "fedsmooth/engine/reference/map.h"

namespace fedsmooth::reference {

template <typename Number>
Map<Number> relu(const Map<Number>& x);
/// The gradient is zero where the ReLU's output y is.
template <typename Number>
Map<Number> relu_back(const Map<Number>& y, const Map<Number>& dy);

/// Applies an activation to each value: relu, leaky-relu, silu or gelu.
template <typename Number>
Map<Number> activate(const Layer& layer, const Map<Number>& x);
/// `x` is the input of activate().
template <typename Number>
Map<Number> activate_back(const Layer& layer, const Map<Number>& x, const Map<Number>& dy);

/// Takes the maximum over windows; NaN is larger than any number. The gradient of a maximum goes to
/// the first pixel of the window that has it.
template <typename Number>
Map<Number> max_pool(const Layer& layer, const Map<Number>& x, const Shape& out);
template <typename Number>
Map<Number> max_pool_back(const Layer& layer, const Map<Number>& x, const Map<Number>& y,
                          const Map<Number>& dy);

/// Takes the mean over the whole map.
template <typename Number>
Map<Number> average_pool(const Map<Number>& x);
template <typename Number>
Map<Number> average_pool_back(const Map<Number>& dy, const Shape& in);

/// Takes every stride-th pixel; channels beyond those of the input are zero.
template <typename Number>
Map<Number> subsample(const Layer& layer, const Map<Number>& x, const Shape& out);
template <typename Number>
Map<Number> subsample_back(const Layer& layer, const Map<Number>& dy, const Shape& in);

}  // namespace fedsmooth::reference
