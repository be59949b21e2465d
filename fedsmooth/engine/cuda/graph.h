// A network as the GPU runs it: a list of nodes, in the order in which they run. A node is
//
//     y = pool(relu(norm(op(x)) + shortcut)),
//
// where any part may be missing. The last node is a linear layer. In family kRows it may first take
// the mean over all pixels, and other layers are rewritten until each fits one node (row_stages.h):
// a pool or a dropout is a node of its own; a hidden linear layer is a convolution whose kernel
// covers the map; a shortcut without weights, and a sum or a ReLU that no convolution or norm
// precedes, is a 1x1 convolution by ones and zeros.
//
// Networks of all kernel families are lowered by the same code. Families differ in the parts that
// they compute, in how channels are filled up and in how a kernel is laid out. A client's weights
// are one vector: trained kernels in the order of the network's tensors, except those of wide
// nodes; fixed kernels; trained kernels of wide nodes; other trained weights; running statistics.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/engine/cuda/kernels/rows/row_maps.h"
#include "fedsmooth/model/parts.h"

namespace fedsmooth {

enum class Family {
  kPairs,  // chains of convolutions and linear layers, see pair_lists.h; kernels are [tap, C, K]
  kRows,   // all others, see row_maps.h; kernels are [tap, K, C]
};

/// The parts of a stage that each family computes. A stage with any other part is refused.
inline constexpr Parts kPairParts = {Part::kNormalize, Part::kConv, Part::kLinear, Part::kRelu,
                                     Part::kMaxPool};
inline constexpr Parts kRowParts = {Part::kNormalize, Part::kConv,      Part::kLinear,
                                    Part::kSubsample, Part::kBatchNorm, Part::kGroupNorm,
                                    Part::kSum,       Part::kRelu,      Part::kMaxPool,
                                    Part::kAvgPool,   Part::kDropout};

/// The dropout of a node of family kRows. A node with a dropout computes nothing else.
struct NodeDropout {
  double rate = 0;
  uint32_t sample = 0;  // see Stage::dropout_sample
  int channels = 0;     // without those that fill up; 0: there is no dropout
};

struct GraphNode {
  enum class Op { kNone, kConvolution, kLinear };

  std::string name;
  Op op = Op::kNone;
  int input = 0, output = 0;  // numbers of maps; 0: the images
  int shortcut = -1;          // number of the map that is added; -1: none
  int kernel = 1, stride = 1, padding = 0;
  int block = 1;                  // `in` has blocks of block x block pixels as channels
  int pool = 0, pool_stride = 0;  // windows of the pool; 0: no pool
  bool means = false;             // the pool takes means, not maxima
  NodeDropout dropout;
  MapShape in, map, out;  // of the map that is read, before the pool, and of the output
  bool fixed = false;     // the kernel is ones and zeros and is not trained
  bool has_bias = false, has_norm = false, relu = false;
  bool of_mean = false;              // a linear layer that reads the mean over all pixels
  bool wide = false;                 // runs by kernels/wide, see is_wide(); only in family kRows
  bool paired = false;               // this node and the next may run as one kernel, see RowPair
  ChannelGroups groups;              // of a group norm; none: a batch norm, if has_norm
  int64_t weight = 0;                // offset of the kernel in a client's vector
  int64_t bias = 0;                  // offset of the op's bias
  int64_t scale = 0, norm_bias = 0;  // offsets of the norm's weight and bias
  int64_t mean = 0, variance = 0;    // offsets of a batch norm's running statistics
  int channel = 0;                   // index of its first channel among GpuGraph::channels

  bool convolves() const { return op == Op::kConvolution; }
  bool has_group_norm() const { return groups.count > 0; }
  bool has_batch_norm() const { return has_norm && !has_group_norm(); }
  bool has_pool() const { return pool > 0; }
  bool has_dropout() const { return dropout.channels > 0; }
  /// Returns whether the maxima are over squares of 2x2 pixels that cover the map without overlap.
  bool pools_squares() const;
  /// Returns whether the blocks of the last taps reach beyond the kernel, where there are no
  /// weights.
  bool is_masked() const { return kernel % block != 0; }
  int taps() const;
  int64_t kernel_size() const { return int64_t{taps()} * in.channels * map.channels; }
};

struct GpuGraph {
  std::vector<GraphNode> nodes;
  std::vector<MapShape> maps;
  Shape input = {};
  std::vector<float> mean, scale;  // per channel of an image: (x - mean) scale
  std::vector<int16_t> source;     // [pixel, channel] of map 0: index of an image's value; -1: zero
  int classes = 0;

  int channels = 0;            // of all nodes with an operation or a norm, but kRows' last one
  int64_t kernels = 0;         // end of the trained kernels in a client's vector, without wide ones
  int64_t wide = 0;            // end of the fixed kernels; kernels of wide nodes begin here
  int64_t working = 0;         // end of the kernels of wide nodes
  int64_t trained = 0;         // end of all trained weights
  int64_t size = 0;            // of a client's vector, a multiple of 64
  std::vector<int> positions;  // index in the vector of each weight, in the order of parameters()

  const GraphNode& head() const { return nodes.back(); }
};

/// Returns why a family cannot run a network, with the stage's name; empty if it can.
std::string graph_refusal(const Network& network, Family family);

/// Lowers a network. Throws a Bug if graph_refusal() refuses it.
GpuGraph make_graph(const Network& network, Family family);

}  // namespace fedsmooth
