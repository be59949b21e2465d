#include "fedsmooth/engine/cuda/residual_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

#include "fedsmooth/base/check.h"
#include "fedsmooth/model/network_json.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

constexpr int64_t kMostChannels = 64, kMostClasses = 1024, kMostWidth = 64;
constexpr int64_t kLargestImage = 12'000;  // what a block of batched_steps.cu holds

struct Refusal {
  std::string why;
};

template <typename... Values>
[[noreturn]] void refuse(const Layer& layer, const std::string& path,
                         fmt::format_string<Values...> why, Values&&... values) {
  throw Refusal{fmt::format("layer {} ({}): {}", layer.name.empty() ? path : layer.name,
                            kind_name(layer.kind),
                            fmt::format(why, std::forward<Values>(values)...))};
}

int fill_up(int64_t channels) { return channels <= 16 ? 16 : channels <= 32 ? 32 : 64; }

RowMap map_of(const Shape& shape) {
  return {static_cast<int>(shape[1]), static_cast<int>(shape[2]), fill_up(shape[0])};
}

// The parts of a client's vector, in their order.
enum class Region { kKernels, kFixed, kTrained, kStatistics };

// Lays out one network. Layers are taken in order.
class Planner {
 public:
  Planner(const Network& network, ResidualGraph& graph) : network_(network), graph_(graph) {}

  void run() {
    graph_.input = shape_ = network_.input;
    if (shape_[0] > kMostChannels || shape_[2] > kMostWidth ||
        shape_[0] * shape_[1] * shape_[2] > kLargestImage) {
      throw Refusal{fmt::format("its images [{}] are too large", fmt::join(shape_, ", "))};
    }
    const auto& layers = network_.layers;
    if (layers.size() < 4 || layers[0].kind != Kind::kNormalize) {
      throw Refusal{"it does not begin with a normalisation"};
    }
    graph_.mean.assign(layers[0].mean.begin(), layers[0].mean.end());
    for (const double sd : layers[0].sd) {
      graph_.scale_of_image.push_back(static_cast<float>(1 / sd));
    }
    graph_.maps.push_back(map_of(shape_));
    const size_t body = layers.size() - 2;
    map_ = add_layers({layers.begin() + 1, layers.begin() + static_cast<int64_t>(body)}, 0, "");
    if (graph_.nodes.empty()) throw Refusal{"it has no convolution"};
    const std::string path = std::to_string(body);
    if (layers[body].kind != Kind::kAvgPool) {
      refuse(layers[body], path, "is not the mean over all pixels, before a linear layer");
    }
    if (map_ != graph_.nodes.back().output) refuse(layers[body], path, "follows no convolution");
    add_linear(layers.back(), std::to_string(body + 1));
    check_gradients();
    place_regions();
  }

 private:
  // From map `x` to the number of the map that comes out. `shape_` follows.
  int add_layers(const std::vector<Layer>& layers, int x, const std::string& path) {
    int map = x;
    bool open = false;  // whether a norm or a ReLU can join the last node
    for (size_t i = 0; i < layers.size(); ++i) {
      const Layer& layer = layers[i];
      const std::string at = fmt::format("{}{}", path, i);
      switch (layer.kind) {
        case Kind::kConv:
        case Kind::kSubsample:
          map = add_conv(layer, map, at);
          open = true;
          break;
        case Kind::kBatchNorm:
          if (!open || last().has_norm || last().relu || last().shortcut >= 0 || last().fixed) {
            refuse(layer, at, "does not follow a convolution");
          }
          if (last().has_bias) refuse(layer, at, "follows a convolution with a bias");
          add_norm();
          break;
        case Kind::kRelu:
          if (!open || last().relu) refuse(layer, at, "does not follow a convolution or a sum");
          last().relu = true;
          break;
        case Kind::kResidual:
          map = add_block(layer, map, at);
          open = true;
          break;
        default:
          refuse(layer, at, "is not supported");
      }
    }
    return map;
  }

  GraphNode& last() { return graph_.nodes.back(); }

  int add_conv(const Layer& layer, int map, const std::string& path) {
    GraphNode node;
    const bool fixed = layer.kind == Kind::kSubsample;
    const Shape out = shape_after(layer, shape_);
    if (layer.kernel != 1 && layer.kernel != 3) {
      refuse(layer, path, "has a kernel of {0}x{0}, not 1x1 or 3x3", layer.kernel);
    }
    if (layer.stride > 2) refuse(layer, path, "has a stride of {}, more than 2", layer.stride);
    if (layer.padding >= layer.kernel) {
      refuse(layer, path, "has padding of {}, as wide as its kernel", layer.padding);
    }
    if (out[0] > kMostChannels) {
      refuse(layer, path, "has {} channels, more than {}", out[0], kMostChannels);
    }
    node.name = layer.name;
    node.input = map;
    node.output = static_cast<int>(graph_.maps.size());
    node.kernel = static_cast<int>(layer.kernel);
    node.stride = static_cast<int>(layer.stride);
    node.padding = static_cast<int>(layer.padding);
    node.in = map_of(shape_);
    node.out = map_of(out);
    node.fixed = fixed;
    node.has_bias = !fixed && layer.bias;
    node.channel = graph_.channels;
    graph_.channels += node.out.channels;
    node.weight = take(fixed ? Region::kFixed : Region::kKernels, node.kernel_size());
    if (!fixed) {
      add_kernel(node, out[0]);
      if (node.has_bias) node.bias = add_vector(Region::kTrained, out[0], node.out.channels);
    }
    graph_.maps.push_back(node.out);
    graph_.nodes.push_back(node);
    shape_ = out;
    return node.output;
  }

  void add_norm() {
    GraphNode& node = last();
    node.has_norm = true;
    const int64_t real = shape_[0];
    const int all = node.out.channels;
    node.scale = add_vector(Region::kTrained, real, all);
    node.bias = add_vector(Region::kTrained, real, all);
    node.mean = add_vector(Region::kStatistics, real, all);
    node.variance = add_vector(Region::kStatistics, real, all);
  }

  int add_block(const Layer& layer, int x, const std::string& path) {
    const Shape before = shape_;
    const size_t first = graph_.nodes.size();
    const int out = add_layers(layer.body, x, path + ".body.");
    if (graph_.nodes.size() == first || last().relu || last().shortcut >= 0) {
      refuse(layer, path, "its body does not end with a convolution or a batch norm");
    }
    const Shape after = shape_;
    GraphNode end = std::move(graph_.nodes.back());
    graph_.nodes.pop_back();
    shape_ = before;
    end.shortcut = add_layers(layer.shortcut, x, path + ".shortcut.");
    if (shape_ != after) refuse(layer, path, "its shortcut has another shape than its body");
    graph_.nodes.push_back(std::move(end));
    return out;
  }

  void add_linear(const Layer& layer, const std::string& path) {
    if (layer.kind != Kind::kLinear) refuse(layer, path, "is not a linear layer, at the end");
    if (layer.outputs > kMostClasses) {
      refuse(layer, path, "has {} classes, more than {}", layer.outputs, kMostClasses);
    }
    graph_.classes = static_cast<int>(layer.outputs);
    graph_.linear_has_bias = layer.bias;
    const int64_t channels = graph_.maps[map_].channels;
    graph_.linear = take(Region::kTrained, layer.outputs * channels);
    for (int64_t k = 0; k < layer.outputs; ++k) {
      for (int64_t c = 0; c < shape_[0]; ++c) {
        place(Region::kTrained, graph_.linear + k * channels + c);
      }
    }
    if (layer.bias) {
      graph_.linear_bias = add_vector(Region::kTrained, layer.outputs, graph_.classes);
    }
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
        throw Refusal{fmt::format("layer {}: what it gives is added where nothing else reads it",
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
  void add_kernel(const GraphNode& node, int64_t outputs) {
    for (int64_t k = 0; k < outputs; ++k) {
      for (int64_t c = 0; c < shape_[0]; ++c) {
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
  ResidualGraph& graph_;
  Shape shape_ = {};
  int map_ = 0;
  std::array<int64_t, 4> ends_ = {};
  std::vector<Region> regions_;  // of each position
};

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
  return graph;
}

}  // namespace fedsmooth
