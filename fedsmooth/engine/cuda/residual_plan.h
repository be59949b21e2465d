// A residual network as the kernels of residual_votes.h run it: a first convolution, three stages
// of blocks, the mean over all pixels, and a linear layer. Each stage has maps of half the side and
// twice the channels of the one before.
//
// The kernels cut the list of convolutions where the shape changes: a stage is its convolutions
// that keep the shape, and the transition to the next stage. So every stage but the first begins
// inside a block, at its second convolution.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "fedsmooth/engine/cuda/kernels/stages/residual_votes.h"
#include "fedsmooth/model/model.h"

namespace fedsmooth {

/// A convolution that keeps the map's side, or halves it.
struct PlannedConv {
  std::string name;
  int in = 0, out = 0, kernel = 3;
  Array weight, bias;  // [out, in, kernel, kernel], [out]
};

struct PlannedStage {
  std::vector<PlannedConv> layers;  // convolutions that keep the shape
  PlannedConv enter, shortcut;      // transition to the next stage; empty in the last stage
};

struct ResidualPlan {
  std::vector<float> mean, scale;  // per channel of an image: (x - mean) scale
  PlannedConv stem;
  std::array<PlannedStage, residual::kStages> stages;
  Array linear, linear_bias;  // [class, channel], [class]
  int classes = 0;
};

/// Returns why the kernels cannot run a network, with the stage's name; empty if they can. They
/// have no batch norm: fold it first.
std::string residual_refusal(const Network& folded);

/// Plans a model. A Bug if residual_refusal() refuses its network.
ResidualPlan plan_residual(const Model& folded);

/// Returns a shortcut without weights as a 1x1 convolution with stride 2 from `in` to 2 `in`
/// channels, the upper half of which is zero. It is exact, because its weights are 1 and 0.
PlannedConv subsampling(int in);

}  // namespace fedsmooth
