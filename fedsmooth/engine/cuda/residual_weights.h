// Weights of a residual network in the order in which the tensor cores' lanes hold them, see
// residual_votes.h. Rounded to bfloat16.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "fedsmooth/engine/cuda/residual_plan.h"

namespace fedsmooth {

/// For Stem::weights.
std::vector<uint4> pack_stem(const PlannedConv& conv);

/// A convolution by products of a warp: a layer of the first two stages, the way into the next one,
/// or its shortcut.
std::vector<uint4> pack_for_warp(const PlannedConv& conv);

/// A layer of the last stage, by products of a warpgroup.
std::vector<uint4> pack_for_warpgroup(const PlannedConv& conv);

}  // namespace fedsmooth
