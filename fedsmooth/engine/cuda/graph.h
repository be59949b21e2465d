// A network as the GPU runs it: nodes in the order in which they run, each an operation with what
// follows it,
//
//     y = maxima(relu(norm(op(x)) + shortcut)),
//
// where every part may be missing. A shortcut without weights is a 1x1 convolution by ones and
// zeros. The last node is a linear layer, which may first take the mean over all pixels.
//
// One lowering serves all kernel families. They differ in the parts that they compute, in how
// channels are filled up and in how a kernel lies in memory. A client's weights are one vector:
// kernels in the order of the network's tensors, fixed kernels, what else is trained, running
// statistics.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/engine/cuda/kernels/rows/row_maps.h"
#include "fedsmooth/model/parts.h"

namespace fedsmooth {

enum class Family {
  kPairs,  // networks of many weights on small maps, see pair_lists.h; kernels are [tap, C, K]
  kRows,   // networks of few weights on large maps, see row_maps.h; kernels are [tap, K, C]
};

/// The parts of a stage that a family computes. A stage with any other part is refused.
inline constexpr Parts kPairParts = {Part::kNormalize, Part::kConv, Part::kLinear, Part::kRelu,
                                     Part::kMaxPool};
inline constexpr Parts kRowParts = {Part::kNormalize, Part::kConv,      Part::kLinear,
                                    Part::kSubsample, Part::kBatchNorm, Part::kGroupNorm,
                                    Part::kSum,       Part::kRelu,      Part::kAvgPool};

struct GraphNode {
  enum class Op { kNone, kConvolution, kLinear };

  std::string name;
  Op op = Op::kNone;
  int input = 0, output = 0;  // numbers of maps; 0 is the image
  int shortcut = -1;          // the map that is added; -1: none
  int kernel = 1, stride = 1, padding = 0;
  int block = 1;                  // side of the blocks of pixels that `in` holds as channels
  int pool = 0, pool_stride = 0;  // windows of the maxima; 0: there are none
  MapShape in, map, out;          // what it reads; before the maxima; what it gives
  bool fixed = false;             // a kernel of ones and zeros, which is not trained
  bool has_bias = false, has_norm = false, relu = false;
  bool of_mean = false;            // a linear layer of the mean over all pixels
  bool paired = false;             // it and the next are a residual block, see find_pairs()
  ChannelGroups groups;            // of a group norm; none: a batch norm
  int64_t weight = 0;              // where a client's vector holds the kernel
  int64_t bias = 0;                // the bias, or the norm's
  int64_t scale = 0;               // the norm's weight
  int64_t mean = 0, variance = 0;  // of a batch norm
  int channel = 0;                 // where its channels begin among those of all nodes

  bool has_group_norm() const { return groups.count > 0; }
  bool has_batch_norm() const { return has_norm && !has_group_norm(); }
  bool has_pool() const { return pool > 0; }
  /// Whether the maxima are over squares of 2x2 pixels, each pixel in one of them.
  bool pools_squares() const;
  /// Whether some taps of blocks lie beyond the kernel.
  bool is_masked() const { return kernel % block != 0; }
  int taps() const;
  int64_t kernel_size() const { return int64_t{taps()} * in.channels * map.channels; }
};

struct GpuGraph {
  std::vector<GraphNode> nodes;
  std::vector<MapShape> maps;
  Shape input = {};
  std::vector<float> mean, scale;  // per channel of an image: (x - mean) scale
  std::vector<int16_t> source;     // of each pixel and channel of map 0: an image's value, -1: none
  int classes = 0;

  int channels = 0;            // of all nodes
  int64_t kernels = 0;         // end of the trained kernels in a client's vector
  int64_t working = 0;         // end of the fixed kernels
  int64_t trained = 0;         // end of all that is trained
  int64_t size = 0;            // of the vector
  std::vector<int> positions;  // of each weight in it, tensors in the order of parameters()

  const GraphNode& head() const { return nodes.back(); }
};

/// Why a family cannot run a network, with the stage's name; empty if it can.
std::string graph_refusal(const Network& network, Family family);

/// For a network that the family does not refuse.
GpuGraph make_graph(const Network& network, Family family);

}  // namespace fedsmooth
