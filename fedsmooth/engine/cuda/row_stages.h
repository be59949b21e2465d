// A network's stages in the form that family kRows lowers: one node for each.
#pragma once

#include <vector>

#include "fedsmooth/model/stages.h"

namespace fedsmooth {

struct RowStages {
  std::vector<Stage> stages;
  bool of_mean = false;  // the linear layer at the end takes the mean over all pixels first
};

/// Returns whether a stage ends in a mean over all pixels that the linear layer at the end takes.
bool leaves_mean_to_end(const std::vector<Stage>& stages, size_t i);

/// Rewrites the stages of a network that check_stages() accepts for family kRows. A pool or a
/// dropout becomes a stage of its own, except that a mean that leaves_mean_to_end() becomes
/// `of_mean`. A hidden linear layer becomes a convolution whose kernel covers the map, and a stage
/// of a sum or a ReLU alone a subsample that keeps every pixel. `op_tensor` becomes the stage's
/// place in the order of tensors, also if the stage has none.
RowStages row_stages(const std::vector<Stage>& stages);

}  // namespace fedsmooth
