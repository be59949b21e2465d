// What each kernel family takes of a network, and how it fills channels up.
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

/// Throws a Refusal that names the first stage that the family does not take.
void check_stages(const Network& network, const std::vector<Stage>& stages, Family family);

/// Throws a Refusal unless the gradient of every map can be summed up where its readers write
/// theirs: a sum hands its own gradient on, which only a convolution can add to.
void check_gradients(const GpuGraph& graph);

/// Returns the number of channels, padding included, of a map of the family with `channels` real
/// ones.
int fill_up(Family family, int64_t channels);

}  // namespace fedsmooth
