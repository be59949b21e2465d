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

/// Throws a Refusal unless the gradient of every map can be accumulated while its readers write
/// theirs. A sum passes its own gradient on to its shortcut, and only a convolution can add to
/// that.
void check_gradients(const GpuGraph& graph);

/// Returns the number of channels that a map of the family stores for `channels` real ones.
int fill_up(Family family, int64_t channels);

}  // namespace fedsmooth
