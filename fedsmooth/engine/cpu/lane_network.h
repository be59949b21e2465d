// A network with both its gradients, for training on one core. Maps are [H, W, C, lanes] with one
// lane per image, and kernels [k, k, C, K], so that weights, which change at every step, are read
// where they lie: all products are multiply() of matrix_product.h. Only products with real pixels
// are done, and on maps of 2x2 and 4x4 only few of those (toeplitz_schemes.h). So it is for 3x3
// kernels before a batch norm (lane_tiles.h). The readable twin and oracle is engine/reference.
#pragma once

#include <memory>
#include <string>

#include "fedsmooth/federated/passes.h"
#include "fedsmooth/model/parts.h"

namespace fedsmooth {

/// The parts of a stage that lane_passes() compute. A stage with any other part is refused.
inline constexpr Parts kLaneParts = {
    Part::kNormalize, Part::kConv,    Part::kStandardize, Part::kLinear,    Part::kSubsample,
    Part::kBatchNorm, Part::kSum,     Part::kRelu,        Part::kLeakyRelu, Part::kSilu,
    Part::kGelu,      Part::kMaxPool, Part::kAvgPool};

/// Why lane_passes() cannot run a network, with the stage that it does not know; empty if it can.
/// It takes networks of kLaneParts that begin with a normalisation alone and end in logits.
std::string lanes_refusal(const Network& network);

std::unique_ptr<Passes> lane_passes(const Network& network);

}  // namespace fedsmooth
