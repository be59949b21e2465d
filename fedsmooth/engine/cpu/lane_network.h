// A network with both its gradients, for training on one core. Maps are [H, W, C, lanes] with one
// lane per image, and kernels [k, k, C, K], so that weights, which change at every step, are read
// in place: all products are multiply() of matrix_product.h. Products with padding are skipped;
// maps of 2x2 and 4x4 need only few of the others (toeplitz_schemes.h), as do 3x3 kernels before a
// batch norm (lane_tiles.h). engine/reference is its oracle.
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

/// Returns why lane_passes() cannot run a network, with the name of the stage; empty if it can. It
/// requires stages of kLaneParts, a first stage that only normalises, and logits at the end.
std::string lanes_refusal(const Network& network);

/// Returns the passes, for one thread at a time.
std::unique_ptr<Passes> lane_passes(const Network& network);

}  // namespace fedsmooth
