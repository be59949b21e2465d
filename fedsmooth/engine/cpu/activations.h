// Activations other than ReLU on CPU cores, in place. Exponentials and the normal distribution are
// polynomials of additions and multiplications only, so that the compiler can vectorise the loops
// and every vector width gives the same bits. ReLU is fused into the preceding layers.
#pragma once

#include <cstdint>

#include "fedsmooth/model/network.h"

namespace fedsmooth {

/// Replaces y by activation(y), for a leaky-relu, silu or gelu, within 4e-7 times max(1, |y|) of
/// the function. NaN stays NaN.
void activate(const Layer& activation, int64_t size, float* y);

/// Multiplies dy by the derivative of the activation at its input x.
void activation_gradient(const Layer& activation, const float* x, int64_t size, float* dy);

}  // namespace fedsmooth
