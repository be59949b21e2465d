// A network's stages, rewritten so that family kRows lowers each of them to one node.
#pragma once

#include <vector>

#include "fedsmooth/model/stages.h"

namespace fedsmooth {

struct RowStages {
  std::vector<Stage> stages;
  bool of_mean = false;  // the linear layer at the end reads the mean over all pixels
};

/// Returns whether a stage ends in a mean over all pixels that the linear layer at the end takes.
bool leaves_mean_to_end(const std::vector<Stage>& stages, size_t i);

/// Rewrites the stages of a network that check_stages() accepts for family kRows. A pool or a
/// dropout becomes a stage of its own, except that a mean that leaves_mean_to_end() becomes
/// `of_mean`. A hidden linear layer becomes a convolution whose kernel covers the map. A stage of a
/// sum or a ReLU alone gets a subsample that keeps every pixel. `op_tensor` is set for all stages
/// but the first, even for those without tensors: it sorts stages by their tensors.
RowStages row_stages(const std::vector<Stage>& stages);

}  // namespace fedsmooth
