#include "fedsmooth/engine/cuda/residual_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "fedsmooth/base/check.h"
#include "fedsmooth/model/stages.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

constexpr int64_t kMostChannels = 64, kMostClasses = 1024, kMostWidth = 64;
constexpr int64_t kLargestImage = 12'000;  // what a block of batched_steps.cu holds

struct Refusal {
  std::string why;
};

template <typename... Values>
[[noreturn]] void refuse(const Stage& stage, fmt::format_string<Values...> why,
                         Values&&... values) {
  throw Refusal{fmt::format("stage {} {}", describe(stage),
                            fmt::format(why, std::forward<Values>(values)...))};
}

int fill_up(int64_t channels) { return channels <= 16 ? 16 : channels <= 32 ? 32 : 64; }

RowMap map_of(const Shape& shape) {
  return {static_cast<int>(shape[1]), static_cast<int>(shape[2]), fill_up(shape[0])};
}

// The parts of a client's vector, in their order.
enum class Region { kKernels, kFixed, kTrained, kStatistics };

// Lays out one network. Tensors lie in the order of parameters(), a body's before its shortcut's;
// nodes run in that order too, but for a sum, which waits for its shortcut.
class Planner {
 public:
  Planner(const Network& network, ResidualGraph& graph)
      : network_(network), stages_(stages_of(network)), graph_(graph) {}

  void run() {
    const auto [channels, height, width] = graph_.input = network_.input;
    if (channels > kMostChannels || width > kMostWidth ||
        channels * height * width > kLargestImage) {
      throw Refusal{fmt::format("its images [{}] are too large", fmt::join(network_.input, ", "))};
    }
    if (stages_.size() < 3) throw Refusal{"it has no convolution before a linear layer"};
    const std::string parts = parts_refusal(stages_, kGraphParts);
    if (!parts.empty()) throw Refusal{parts};
    add_normalization();
    std::vector<int> laid;  // stages in the order of their tensors
    for (int i = 1; i + 1 < std::ssize(stages_); ++i) laid.push_back(i);
    std::ranges::stable_sort(laid, {}, [this](int i) { return stages_[i].op_tensor; });
    map_of_stage_.assign(stages_.size(), 0);
    for (size_t i = 0; i < laid.size(); ++i) map_of_stage_[laid[i]] = static_cast<int>(i) + 1;
    for (const int i : laid) add_node(stages_[i], map_of_stage_[i]);
    add_linear(stages_.back());
    put_in_running_order();
    check_gradients();
    place_regions();
  }

 private:
  void add_normalization() {
    const Stage& first = stages_[0];
    if (first.parts != Parts{Part::kNormalize}) refuse(first, "is not a normalisation alone");
    const std::string why = normalization_refusal(stages_);
    if (!why.empty()) throw Refusal{why};
    graph_.mean.assign(first.op->mean.begin(), first.op->mean.end());
    for (const double sd : first.op->sd) {
      graph_.scale_of_image.push_back(static_cast<float>(1 / sd));
    }
    graph_.maps.push_back(map_of(network_.input));
  }

  void check_stage(const Stage& stage) const {
    if (!stage.is_op(Kind::kConv) && !stage.is_op(Kind::kSubsample)) {
      refuse(stage, "does not begin with a convolution");
    }
    const Layer& op = *stage.op;
    if (op.kernel != 1 && op.kernel != 3) {
      refuse(stage, "has a kernel of {0}x{0}, not 1x1 or 3x3", op.kernel);
    }
    if (op.stride > 2) refuse(stage, "has a stride of {}, more than 2", op.stride);
    if (op.padding >= op.kernel) {
      refuse(stage, "has padding of {}, as wide as its kernel", op.padding);
    }
    if (op.outputs > kMostChannels) {
      refuse(stage, "has {} channels, more than {}", op.outputs, kMostChannels);
    }
    if (stage.norm && !stage.is_op(Kind::kConv)) refuse(stage, "has a norm of a subsample");
    if (stage.norm && op.bias) refuse(stage, "has a norm of a convolution with a bias");
    const bool last = &stage == &stages_.end()[-2];
    if (last && !stage.pool) {
      refuse(stage, "does not end with the mean over all pixels, before a linear layer");
    }
    if (stage.pool && !last) refuse(stage, "takes the mean over all pixels before the end");
  }

  void add_node(const Stage& stage, int output) {
    check_stage(stage);
    const Layer& op = *stage.op;
    GraphNode node;
    node.name = stage.name;
    node.input = map_of_stage_[stage.input];
    node.output = output;
    node.kernel = static_cast<int>(op.kernel);
    node.stride = static_cast<int>(op.stride);
    node.padding = static_cast<int>(op.padding);
    node.in = map_of(stage.in);
    node.out = map_of(stage.map);
    node.fixed = stage.is_op(Kind::kSubsample);
    node.has_bias = !node.fixed && op.bias;
    node.has_norm = stage.norm.has_value();
    node.relu = stage.is_activation(Kind::kRelu);
    if (stage.saved) node.shortcut = map_of_stage_[*stage.saved];
    node.channel = graph_.channels;
    graph_.channels += node.out.channels;
    node.weight = take(node.fixed ? Region::kFixed : Region::kKernels, node.kernel_size());
    if (!node.fixed) add_kernel(node, stage.in[0], op.outputs);
    const auto add = [&](Region region) {
      return add_vector(region, op.outputs, node.out.channels);
    };
    if (node.has_norm) {
      node.scale = add(Region::kTrained);
      node.bias = add(Region::kTrained);
      if (stage.is_norm(Kind::kGroupNorm)) {
        const int groups = static_cast<int>(stage.norm->groups);
        node.groups = {groups, static_cast<int>(op.outputs) / groups};
      } else {
        node.mean = add(Region::kStatistics);
        node.variance = add(Region::kStatistics);
      }
    } else if (node.has_bias) {
      node.bias = add(Region::kTrained);
    }
    graph_.maps.push_back(node.out);
    graph_.nodes.push_back(std::move(node));
  }

  void add_linear(const Stage& stage) {
    if (stage.parts != Parts{Part::kLinear}) {
      refuse(stage, "is not a linear layer alone, at the end");
    }
    const Layer& op = *stage.op;
    if (op.outputs > kMostClasses) {
      refuse(stage, "has {} classes, more than {}", op.outputs, kMostClasses);
    }
    graph_.classes = static_cast<int>(op.outputs);
    graph_.linear_has_bias = op.bias;
    const int64_t channels = graph_.maps[map_of_stage_[stage.input]].channels;
    graph_.linear = take(Region::kTrained, op.outputs * channels);
    for (int64_t k = 0; k < op.outputs; ++k) {
      for (int64_t c = 0; c < stage.in[0]; ++c) {
        place(Region::kTrained, graph_.linear + k * channels + c);
      }
    }
    if (op.bias) graph_.linear_bias = add_vector(Region::kTrained, op.outputs, graph_.classes);
  }

  // The node of map m is number m - 1 until then.
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

  // What reads a map hands its gradient back: convolutions write theirs, one after another; a sum
  // hands on the very map of its own gradient, which only a convolution can add to.
  void check_gradients() const {
    for (size_t map = 1; map < graph_.maps.size(); ++map) {
      int read = 0, added = 0;
      const GraphNode* made = nullptr;
      for (const GraphNode& node : graph_.nodes) {
        read += node.input == static_cast<int>(map);
        added += node.shortcut == static_cast<int>(map);
        if (node.output == static_cast<int>(map)) made = &node;
      }
      if (added > 1 || (added == 1 && read == 0 && made->relu)) {
        throw Refusal{fmt::format("stage {}: what it gives is added where nothing else reads it",
                                  made->name)};
      }
    }
  }

  // Regions follow each other; until all are known, positions are within their own.
  int64_t take(Region region, int64_t count) {
    int64_t& end = ends_[static_cast<int>(region)];
    return std::exchange(end, end + count);
  }

  void place(Region region, int64_t position) {
    graph_.positions.push_back(static_cast<int>(position));
    regions_.push_back(region);
  }

  int64_t add_vector(Region region, int64_t real, int all) {
    const int64_t begin = take(region, all);
    for (int64_t i = 0; i < real; ++i) place(region, begin + i);
    return begin;
  }

  // A kernel [K, C, k, k] as [tap, K, C].
  void add_kernel(const GraphNode& node, int64_t inputs, int64_t outputs) {
    for (int64_t k = 0; k < outputs; ++k) {
      for (int64_t c = 0; c < inputs; ++c) {
        for (int64_t tap = 0; tap < node.taps(); ++tap) {
          place(Region::kKernels,
                node.weight + (tap * node.out.channels + k) * node.in.channels + c);
        }
      }
    }
  }

  void place_regions() {
    std::array<int64_t, 4> begin = {};
    for (size_t i = 1; i < 4; ++i) begin[i] = (begin[i - 1] + ends_[i - 1] + 63) / 64 * 64;
    graph_.kernels = begin[1];
    graph_.working = begin[2];
    graph_.trained = begin[3];
    graph_.size = (begin[3] + ends_[3] + 63) / 64 * 64;
    for (size_t i = 0; i < graph_.positions.size(); ++i) {
      graph_.positions[i] += static_cast<int>(begin[static_cast<int>(regions_[i])]);
    }
    for (GraphNode& node : graph_.nodes) {
      if (node.fixed) node.weight += begin[1];
      node.bias += begin[2];
      node.scale += begin[2];
      node.mean += begin[3];
      node.variance += begin[3];
    }
    graph_.linear += begin[2];
    graph_.linear_bias += begin[2];
  }

  const Network& network_;
  std::vector<Stage> stages_;
  ResidualGraph& graph_;
  std::vector<int> map_of_stage_;
  std::array<int64_t, 4> ends_ = {};
  std::vector<Region> regions_;  // of each position
};

// Marks pairs of nodes where nothing else reads what is between them, or adds to the gradient of
// what they begin with. A norm by groups does not fold into a kernel.
void find_pairs(std::vector<GraphNode>& nodes) {
  for (size_t i = 0; i + 1 < nodes.size(); ++i) {
    GraphNode& first = nodes[i];
    const GraphNode& second = nodes[i + 1];
    const bool taken = i > 0 && nodes[i - 1].paired;
    first.paired = !taken && !first.has_group_norm() && !second.has_group_norm() &&
                   first.shortcut < 0 && second.input == first.output;
    for (const GraphNode& other : nodes) {
      const bool reads = &other != &first && &other != &second &&
                         (other.input == first.output || other.input == first.input ||
                          other.shortcut == first.input);
      if (reads || other.shortcut == first.output) first.paired = false;
    }
  }
}

}  // namespace

std::string graph_refusal(const Network& network) {
  try {
    ResidualGraph graph;
    Planner(network, graph).run();
  } catch (const Refusal& refusal) {
    return refusal.why;
  }
  return {};
}

ResidualGraph plan_graph(const Network& network) {
  const std::string refusal = graph_refusal(network);
  check(refusal.empty(), "plan_graph: network {}: {}", network.name, refusal);
  ResidualGraph graph;
  Planner(network, graph).run();
  find_pairs(graph.nodes);
  return graph;
}

}  // namespace fedsmooth
