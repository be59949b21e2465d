// Every kind of layer, forwards and backwards, in plain loops over maps [B, C, H, W]: the text that
// faster engines are checked against. In float it is an engine of its own, for layers that no other
// knows; in double it is what finite differences are taken of. Sums are in double either way, but
// for those of a convolution. Here the layers without weights; the others in convolutions.h and
// norms.h.
#pragma once

#include "fedsmooth/engine/reference/map.h"

namespace fedsmooth::reference {

template <typename Number>
Map<Number> relu(const Map<Number>& x);
/// Where the ReLU gave zero no gradient passes.
template <typename Number>
Map<Number> relu_back(const Map<Number>& y, const Map<Number>& dy);

/// A layer that acts on each value by itself: relu, leaky-relu, silu or gelu.
template <typename Number>
Map<Number> activate(const Layer& layer, const Map<Number>& x);
/// The gradient at the input x.
template <typename Number>
Map<Number> activate_back(const Layer& layer, const Map<Number>& x, const Map<Number>& dy);

/// The maximum over windows; NaN wins. Its gradient goes to the first pixel that has it.
template <typename Number>
Map<Number> max_pool(const Layer& layer, const Map<Number>& x, const Shape& out);
template <typename Number>
Map<Number> max_pool_back(const Layer& layer, const Map<Number>& x, const Map<Number>& y,
                          const Map<Number>& dy);

/// The mean over the whole map.
template <typename Number>
Map<Number> average_pool(const Map<Number>& x);
template <typename Number>
Map<Number> average_pool_back(const Map<Number>& dy, const Shape& in);

/// Every stride-th pixel; channels beyond the input's are zero.
template <typename Number>
Map<Number> subsample(const Layer& layer, const Map<Number>& x, const Shape& out);
template <typename Number>
Map<Number> subsample_back(const Layer& layer, const Map<Number>& dy, const Shape& in);

}  // namespace fedsmooth::reference
