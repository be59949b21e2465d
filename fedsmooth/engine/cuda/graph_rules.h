// Which networks each kernel family can run, and how it fills channels up.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/engine/cuda/graph.h"
#include "fedsmooth/model/stages.h"

namespace fedsmooth {

/// Thrown with the reason for which a network is refused.
struct Refusal {
  std::string why;
};

/// Throws a Refusal that names the first stage that the family cannot run.
void check_stages(const Network& network, const std::vector<Stage>& stages, Family family);

/// Returns whether a stage of row_stages() is a convolution that only the wide kernels run, because
/// of its channels, its kernel, or maps that are too large for the other kernels on the current
/// GPU. With `among_wide` the network has one, and a convolution from 64 channels to 64 joins it.
bool is_wide(const Stage& stage, bool among_wide);

/// Returns the number of channels that a map of the family stores for `channels` real ones.
int fill_up(Family family, int64_t channels);

}  // namespace fedsmooth
