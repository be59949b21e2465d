// A residual network as the kernels of residual_votes.h run it: a first convolution, three stages
// of blocks, each with half the pixels and twice the channels of the one before, the mean over all
// pixels, a linear layer.
//
// The kernels cut the list of convolutions where the shape changes: a stage is its convolutions
// that keep the shape, and the way into the next stage. So every stage but the first begins inside
// a block, at its second convolution.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "fedsmooth/engine/cuda/kernels/stages/residual_votes.h"
#include "fedsmooth/model/model.h"

namespace fedsmooth {

/// A convolution that keeps the map's size, or halves it.
struct PlannedConv {
  std::string name;
  int in = 0, out = 0, kernel = 3;
  Array weight, bias;  // [out, in, kernel, kernel], [out]
};

struct PlannedStage {
  std::vector<PlannedConv> layers;  // that keep the shape
  PlannedConv enter, shortcut;      // into the next stage; the last one has none
};

struct ResidualPlan {
  std::vector<float> mean, scale;  // per channel of an image: (x - mean) scale
  PlannedConv stem;
  std::array<PlannedStage, residual::kStages> stages;
  Array linear, linear_bias;  // [class, channel], [class]
  int classes = 0;
};

/// Why the kernels cannot run a network, with the layer's name; empty if they can. A batch norm is
/// a layer that they do not know: fold it first.
std::string residual_refusal(const Network& folded);

/// For a model whose network is not refused.
ResidualPlan plan_residual(const Model& folded);

/// Every second pixel, channels filled up with zeros, as a 1x1 convolution. Exact: it multiplies by
/// 1 and 0 only.
PlannedConv subsampling(int in);

}  // namespace fedsmooth
