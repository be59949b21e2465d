#include "fedsmooth/engine/cuda/graph.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "fedsmooth/base/check.h"
#include "fedsmooth/engine/cuda/client_vector.h"
#include "fedsmooth/engine/cuda/graph_rules.h"
#include "fedsmooth/engine/cuda/row_stages.h"
#include "fedsmooth/model/stages.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

// Lowers one network, or throws a Refusal. Tensors are in the order of parameters(), a body's
// before its shortcut's; nodes run in that order too, except that a sum runs after its shortcut.
class Lowering {
 public:
  Lowering(const Network& network, Family family)
      : network_(network), stages_(stages_of(network)), family_(family) {}

  GpuGraph run() {
    check_stages(network_, stages_, family_);
    if (family_ == Family::kRows) {
      RowStages rewritten = row_stages(stages_);
      stages_ = std::move(rewritten.stages);
      of_mean_ = rewritten.of_mean;
      has_wide_ = std::ranges::any_of(
          stages_, [this](const Stage& stage) { return is_wide(stage, /*among_wide=*/false); });
    }
    add_images();
    std::vector<int> laid;  // stages in the order of their tensors
    for (int i = 1; i < std::ssize(stages_); ++i) laid.push_back(i);
    // A chain of kPairs is in that order already; its maxima have no tensors to sort by.
    if (family_ == Family::kRows) {
      std::ranges::stable_sort(laid, {}, [this](int i) { return stages_[i].op_tensor; });
    }
    map_of_stage_.assign(stages_.size(), 0);
    for (size_t i = 0; i < laid.size(); ++i) map_of_stage_[laid[i]] = static_cast<int>(i) + 1;
    for (const int i : laid) add_node(stages_[i], map_of_stage_[i]);
    graph_.classes = static_cast<int>(stages_.back().out[0]);
    put_in_running_order();
    vector_.finish(graph_, family_);
    return std::move(graph_);
  }

 private:
  MapShape map_of(const Shape& shape) const {
    return {static_cast<int>(shape[1]), static_cast<int>(shape[2]), fill_up(family_, shape[0])};
  }

  void add_images() {
    const Layer& normalize = *stages_[0].op;
    graph_.input = network_.input;
    graph_.mean.assign(normalize.mean.begin(), normalize.mean.end());
    for (const double sd : normalize.sd) graph_.scale.push_back(static_cast<float>(1 / sd));
    graph_.maps.push_back(map_of(network_.input));
    place_images(/*block=*/1, /*padding=*/0);
  }

  // Makes map 0 have blocks of `block` x `block` pixels as channels. The first block begins with
  // the padding.
  void place_images(int64_t block, int64_t padding) {
    const auto [channels, rows, columns] = network_.input;
    const MapShape& map = graph_.maps[0];
    graph_.source.assign(map.row_size(), -1);
    int16_t value = 0;
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t y = padding; y < rows + padding; ++y) {
        for (int64_t x = padding; x < columns + padding; ++x, ++value) {
          if (y / block >= map.height || x / block >= map.width) continue;
          const int64_t pixel = y / block * map.width + x / block;
          const int64_t channel = (c * block + y % block) * block + x % block;
          graph_.source[pixel * map.channels + channel] = value;
        }
      }
    }
  }

  void add_node(const Stage& stage, int output) {
    GraphNode node;
    node.name = stage.name;
    node.input = map_of_stage_[stage.input];
    node.output = output;
    if (stage.saved) node.shortcut = map_of_stage_[*stage.saved];
    node.relu = stage.is_activation(Kind::kRelu);
    node.in = node.input == 0 ? graph_.maps[0] : map_of(stage.in);
    node.map = map_of(stage.map);
    node.out = node.map;
    if (stage.pool) add_pool(stage, node);
    if (stage.dropout) {
      node.dropout = {stage.dropout->drop_rate, stage.dropout_sample,
                      static_cast<int>(stage.map[0])};
    }
    if (stage.op) add_operation(stage, node);
    if (stage.norm) add_norm(stage, node);
    graph_.maps.push_back(node.out);
    graph_.nodes.push_back(std::move(node));
  }

  void add_pool(const Stage& stage, GraphNode& node) {
    node.means = stage.is_pool(Kind::kAvgPool);
    node.pool = static_cast<int>(node.means ? stage.map[1] : stage.pool->kernel);
    node.pool_stride = static_cast<int>(node.means ? 1 : stage.pool->stride);
    node.out = map_of(stage.out);
    // In a chain of family kPairs, maxima without an operation pass gradients on where the ReLU
    // before them does.
    if (family_ == Family::kPairs && !stage.op) node.relu = graph_.nodes.back().relu;
  }

  void add_operation(const Stage& stage, GraphNode& node) {
    const Layer& op = *stage.op;
    const bool linear = op.kind == Kind::kLinear;
    node.op = linear ? GraphNode::Op::kLinear : GraphNode::Op::kConvolution;
    node.of_mean = linear && of_mean_;
    node.fixed = op.kind == Kind::kSubsample;
    node.has_bias = !node.fixed && op.bias;
    if (!linear) {
      node.kernel = static_cast<int>(op.kernel);
      node.stride = static_cast<int>(op.stride);
      node.padding = static_cast<int>(op.padding);
    }
    const bool rows = family_ == Family::kRows;
    if (!rows && !linear && node.input == 0) read_blocks(stage, node);
    if (rows && linear) {
      node.map.channels = node.out.channels = static_cast<int>(op.outputs);
    } else {
      take_channels(node);
    }
    node.wide = rows && is_wide(stage, has_wide_);
    const Region region = region_of_kernel(node, family_);
    node.weight = vector_.take(region, node.kernel_size());
    if (!node.fixed) add_kernel(region, stage, node);
    if (node.has_bias) {
      node.bias = vector_.add_vector(Region::kTrained, op.outputs, node.map.channels);
    }
  }

  void take_channels(GraphNode& node) {
    node.channel = graph_.channels;
    graph_.channels += node.map.channels;
  }

  // Makes a strided convolution of the image one of stride 1 on blocks of pixels.
  void read_blocks(const Stage& stage, GraphNode& node) {
    node.block = node.stride;
    const int more = (node.kernel + node.block - 1) / node.block - 1;
    const int64_t channels = stage.in[0] * node.block * node.block;
    node.in = graph_.maps[0] = {node.map.height + more, node.map.width + more,
                                fill_up(family_, channels)};
    place_images(node.block, node.padding);
  }

  void add_norm(const Stage& stage, GraphNode& node) {
    const auto add = [&](Region region) {
      return vector_.add_vector(region, stage.map[0], node.map.channels);
    };
    if (!stage.op) take_channels(node);
    node.has_norm = true;
    node.scale = add(Region::kTrained);
    node.norm_bias = add(Region::kTrained);
    if (stage.is_norm(Kind::kGroupNorm)) {
      const int groups = static_cast<int>(stage.norm->groups);
      node.groups = {groups, static_cast<int>(stage.map[0]) / groups};
    } else {
      node.mean = add(Region::kStatistics);
      node.variance = add(Region::kStatistics);
    }
  }

  // Before this call the node that writes map m has number m - 1.
  void put_in_running_order() {
    std::vector<GraphNode> made = std::exchange(graph_.nodes, {});
    std::vector<bool> placed(made.size() + 1);
    placed[0] = true;
    const std::function<void(int)> put = [&](int map) {
      if (placed[map]) return;
      placed[map] = true;
      GraphNode& node = made[map - 1];
      put(node.input);
      put(std::max(node.shortcut, 0));
      graph_.nodes.push_back(std::move(node));
    };
    for (int map = 1; map <= std::ssize(made); ++map) put(map);
  }

  // Places the weights of a kernel [K, C, k, k], or [K, C, H, W] for a linear layer.
  void add_kernel(Region region, const Stage& stage, const GraphNode& node) {
    const bool whole = node.op == GraphNode::Op::kLinear && !node.of_mean;
    const int64_t height = whole ? stage.in[1] : node.kernel;
    const int64_t width = whole ? stage.in[2] : node.kernel;
    const int64_t taps_in_line = (width + node.block - 1) / node.block;
    for (int64_t k = 0; k < stage.op->outputs; ++k) {
      for (int64_t c = 0; c < stage.in[0]; ++c) {
        for (int64_t y = 0; y < height; ++y) {
          for (int64_t x = 0; x < width; ++x) {
            const int64_t tap = y / node.block * taps_in_line + x / node.block;
            const int64_t channel = (c * node.block + y % node.block) * node.block + x % node.block;
            vector_.place(region, node.weight + offset_in_kernel(node, tap, channel, k));
          }
        }
      }
    }
  }

  int64_t offset_in_kernel(const GraphNode& node, int64_t tap, int64_t c, int64_t k) const {
    if (family_ == Family::kRows) {
      // The last node's kernel is [K, tap, C], see RowHead.
      const int64_t line = node.convolves() ? tap * node.map.channels + k : k * node.taps() + tap;
      return line * node.in.channels + c;
    }
    return (tap * node.in.channels + c) * node.map.channels + k;
  }

  const Network& network_;
  std::vector<Stage> stages_;
  Family family_;
  GpuGraph graph_;
  bool of_mean_ = false;   // the last node takes the mean over all pixels first
  bool has_wide_ = false;  // the network has a node that only the wide kernels can run
  std::vector<int> map_of_stage_;
  ClientVector vector_;
};

// Returns whether a node in mode kAnswers is a convolution by the kernels for few channels.
bool can_fold(const GraphNode& node) {
  return node.convolves() && !node.wide && !node.has_group_norm();
}

// Marks pairs of nodes if no other node reads the map between them or adds to the gradient of the
// first one's input.
void find_pairs(std::vector<GraphNode>& nodes) {
  for (size_t i = 0; i + 2 < nodes.size(); ++i) {
    GraphNode& first = nodes[i];
    const GraphNode& second = nodes[i + 1];
    const bool taken = i > 0 && nodes[i - 1].paired;
    first.paired = !taken && can_fold(first) && can_fold(second) && first.shortcut < 0 &&
                   second.input == first.output;
    for (const GraphNode& other : nodes) {
      const bool reads = &other != &first && &other != &second &&
                         (other.input == first.output || other.input == first.input ||
                          other.shortcut == first.input);
      if (reads || other.shortcut == first.output) first.paired = false;
    }
  }
}

}  // namespace

bool GraphNode::pools_squares() const {
  return pool == 2 && pool_stride == 2 && map.height % 2 == 0 && map.width % 2 == 0;
}

int GraphNode::taps() const {
  if (op == Op::kLinear) return of_mean ? 1 : in.pixels();
  const int along = (kernel + block - 1) / block;
  return along * along;
}

std::string graph_refusal(const Network& network, Family family) {
  try {
    Lowering(network, family).run();
  } catch (const Refusal& refusal) {
    return refusal.why;
  }
  return {};
}

GpuGraph make_graph(const Network& network, Family family) {
  const std::string refusal = graph_refusal(network, family);
  check(refusal.empty(), "make_graph: network {}: {}", network.name, refusal);
  GpuGraph graph = Lowering(network, family).run();
  if (family == Family::kRows) find_pairs(graph.nodes);
  return graph;
}

}  // namespace fedsmooth
