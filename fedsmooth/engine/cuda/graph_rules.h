// Which networks each kernel family can run, and how it fills channels up.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/engine/cuda/graph.h"
#include "fedsmooth/model/stages.h"

namespace fedsmooth {

/// Thrown if a network is refused, with the reason.
struct Refusal {
  std::string why;
};

/// Throws a Refusal if the family cannot run the network. It names the first stage that is at
/// fault, if one is.
void check_stages(const Network& network, const std::vector<Stage>& stages, Family family);

/// Returns whether the wide kernels run a stage of row_stages(): a convolution with more than 64
/// channels, with a kernel other than 1x1 and 3x3, made of a linear layer, or with maps too large
/// for the other kernels on the current GPU. If `among_wide` is set, the network has such a stage,
/// and convolutions from 64 channels to 64 are wide, too.
bool is_wide(const Stage& stage, bool among_wide);

/// Returns the number of channels that a map stores for `channels` real ones.
int fill_up(Family family, int64_t channels);

}  // namespace fedsmooth
