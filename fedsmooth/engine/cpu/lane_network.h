// A plain layer list with both its gradients, for training on one core. Maps are [H, W, C, lanes]
// with one lane per image, and kernels [k, k, C, K], so that weights, which change at every step,
// are read where they lie: all work is multiply() of matrix_product.h. Only products with real
// pixels are done, and on maps of 2x2 and 4x4 only few of those (toeplitz_schemes.h). The readable
// twin and oracle is engine/reference.
#pragma once

#include <memory>

#include "fedsmooth/federated/passes.h"

namespace fedsmooth {

/// Whether lane_passes() knows the network: layer lists of normalisation, convolution, ReLU,
/// max-pooling and linear layers.
bool lanes_support(const Network& network);

std::unique_ptr<Passes> lane_passes(const Network& network);

}  // namespace fedsmooth
