// Activations other than ReLU on CPU cores, in place. Exponentials and the normal distribution are
// polynomials of our own, additions and multiplications only: loops over them become vectors, and
// every vector width gives the same bits. ReLU is fused into the layers before it.
#pragma once

#include <cstdint>

#include "fedsmooth/model/network.h"

namespace fedsmooth {

/// y = activation(y) for a leaky-relu, silu or gelu. NaN stays NaN. Within 4e-7 times max(1, |y|)
/// of the function.
void activate(const Layer& activation, int64_t size, float* y);

/// dy = dy times the activation's slope at its input x.
void activation_gradient(const Layer& activation, const float* x, int64_t size, float* dy);

}  // namespace fedsmooth
