// A residual network as it runs on the GPU: convolutions in the order in which they run, each
// with the batch or group norm, the sum and the ReLU that follow it,
//
//     y = relu(norm(conv(x)) + shortcut),
//
// then the mean over all pixels and a linear layer. A shortcut without weights is a 1x1 convolution
// by ones and zeros.
//
// A client's weights are one vector: kernels [tap, K, C] in the order of the list, filled up to
// whole maps; what else is trained; running statistics.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/engine/cuda/kernels/rows/row_maps.h"
#include "fedsmooth/model/parts.h"

namespace fedsmooth {

struct GraphNode {
  std::string name;
  int input = 0, output = 0;  // numbers of maps; 0 is the image
  int kernel = 3, stride = 1, padding = 1;
  RowMap in, out;
  bool fixed = false;  // a kernel of ones and zeros, which is not trained
  bool has_bias = false, has_norm = false, relu = false;
  bool paired = false;             // it and the next are a residual block, see find_pairs()
  ChannelGroups groups;            // of a group norm; none: a batch norm
  int shortcut = -1;               // the map that is added; -1: none
  int64_t weight = 0;              // where a client's vector holds the kernel
  int64_t bias = 0;                // the bias, or the norm's
  int64_t scale = 0;               // the norm's weight
  int64_t mean = 0, variance = 0;  // of a batch norm
  int channel = 0;                 // where its channels begin among those of all nodes

  bool has_group_norm() const { return groups.count > 0; }
  bool has_batch_norm() const { return has_norm && !has_group_norm(); }
  int taps() const { return kernel * kernel; }
  int64_t kernel_size() const { return int64_t{taps()} * in.channels * out.channels; }
};

struct ResidualGraph {
  std::vector<GraphNode> nodes;
  std::vector<RowMap> maps;
  Shape input = {};
  std::vector<float> mean, scale_of_image;  // per channel of an image: (x - mean) scale
  int classes = 0;
  bool linear_has_bias = true;
  int64_t linear = 0, linear_bias = 0;  // [class, channel], [class]

  int channels = 0;            // of all nodes
  int64_t kernels = 0;         // end of the trained kernels in a client's vector
  int64_t working = 0;         // and of the fixed ones
  int64_t trained = 0;         // and of all that is trained
  int64_t size = 0;            // and of the vector
  std::vector<int> positions;  // of each weight in it, tensors in the order of parameters()

  const RowMap& last() const { return maps[nodes.back().output]; }
};

/// The parts of a stage that a graph computes. A stage with any other part is refused.
inline constexpr Parts kGraphParts = {Part::kNormalize, Part::kConv,      Part::kLinear,
                                      Part::kSubsample, Part::kBatchNorm, Part::kGroupNorm,
                                      Part::kSum,       Part::kRelu,      Part::kAvgPool};

/// Why the GPU cannot run a network as a residual one, with the stage's name; empty if it can.
std::string graph_refusal(const Network& network);

/// For a network that is not refused.
ResidualGraph plan_graph(const Network& network);

}  // namespace fedsmooth
