// Packs the weights of a residual network, rounded to bfloat16, in the order in which lanes hold
// them for the tensor cores; see residual_votes.h.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "fedsmooth/engine/cuda/residual_plan.h"

namespace fedsmooth {

/// Packs the first convolution, for Stem::weights.
std::vector<uint4> pack_stem(const PlannedConv& conv);

/// Packs a convolution by products of a warp: a layer of the first two stages, or a transition's
/// convolution or shortcut.
std::vector<uint4> pack_for_warp(const PlannedConv& conv);

/// Packs a layer of the last stage, which is computed by products of a warpgroup.
std::vector<uint4> pack_for_warpgroup(const PlannedConv& conv);

}  // namespace fedsmooth
