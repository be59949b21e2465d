#ifdef FEDSMOOTH_CUDA

#include "fedsmooth/engine/cuda/pair_lists.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/engine/cuda/all_pairs.h"
#include "tests/engine/networks.h"
#include "tests/engine/passes.h"

namespace fedsmooth {
namespace {

Network network_called(const std::string& name) {
  using Kind = Layer::Kind;
  if (name == "pools") return twice_pooled_network();
  if (name != "odd") return named_network(name);
  return {"odd",
          {2, 13, 10},
          {two_channel_normalization(), layer(Kind::kConv, "a", 7, 5, 3, 1), layer(Kind::kRelu, ""),
           layer(Kind::kMaxPool, "", 0, 2, 1), layer(Kind::kConv, "b", 20, 3, 2, 2),
           layer(Kind::kLinear, "c", 6)}};
}

GpuGraph graph_of(const std::string& name) {
  return make_graph(network_called(name), Family::kPairs);
}

// A map [pixel, row, channel] in double.
struct ExactMap {
  int64_t rows, channels;
  std::vector<double> values;

  ExactMap(const MapShape& map, int64_t of_rows, double start = 0)
      : rows(of_rows), channels(map.channels), values(map.pixels() * rows * channels, start) {}
  double& value(int64_t pixel, int64_t row, int64_t channel) {
    return values[(pixel * rows + row) * channels + channel];
  }
};

// What the GPU does for a node's operation, written plainly.
ExactMap multiply(const GraphNode& node, const std::vector<double>& vector, ExactMap& x) {
  const NodePairs pairs = product_pairs(node);
  ExactMap y(node.map, x.rows);
  for (int o = 0; o < node.map.pixels(); ++o) {
    for (int64_t row = 0; row < y.rows; ++row) {
      for (int64_t k = 0; k < y.channels; ++k) {
        double& out = y.value(o, row, k);
        for (const Pair& pair : pairs.by_output[o]) {
          const double* weights =
              vector.data() + node.weight + pair.right * x.channels * y.channels;
          for (int64_t c = 0; c < x.channels; ++c) {
            out += x.value(pair.left, row, c) * weights[c * y.channels + k];
          }
        }
        if (node.has_bias) out += vector[node.bias + k];
        if (node.relu) out = std::max(out, 0.0);
      }
    }
  }
  return y;
}

ExactMap take_maxima(const GraphNode& node, ExactMap& x) {
  const NodePairs windows = pool_pairs(node);
  ExactMap y(node.out, x.rows, -1e30);
  for (int o = 0; o < node.out.pixels(); ++o) {
    for (int64_t row = 0; row < y.rows; ++row) {
      for (int64_t k = 0; k < y.channels; ++k) {
        for (const Pair& pair : windows.by_output[o]) {
          y.value(o, row, k) = std::max(y.value(o, row, k), x.value(pair.left, row, k));
        }
      }
    }
  }
  return y;
}

// Logits [row, class] of the network by its graph.
Array run_graph(const GpuGraph& graph, const Weights& weights, const Array& images) {
  std::vector<double> vector(graph.size, 0.0);
  size_t next = 0;
  for (const Array& w : weights) {
    for (const float value : values_of(w)) vector[graph.positions[next++]] = value;
  }
  EXPECT_EQ(next, graph.positions.size());

  const int64_t rows = images.size(0), area = graph.input[1] * graph.input[2];
  const int64_t image_size = graph.input[0] * area, channels = graph.maps[0].channels;
  ExactMap x(graph.maps[0], rows);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t cell = 0; cell < std::ssize(graph.source); ++cell) {
      const int value = graph.source[cell];
      if (value < 0) continue;
      const int64_t c = value / area;
      x.value(cell / channels, row, cell % channels) =
          (static_cast<double>(images.floats()[row * image_size + value]) - graph.mean[c]) *
          graph.scale[c];
    }
  }
  for (const GraphNode& node : graph.nodes) {
    if (node.op != GraphNode::Op::kNone) x = multiply(node, vector, x);
    if (node.has_pool()) x = take_maxima(node, x);
  }
  Array logits({rows, graph.classes});
  for (int64_t i = 0; i < logits.count(); ++i) {
    logits.floats()[i] = static_cast<float>(x.value(0, i / graph.classes, i % graph.classes));
  }
  return logits;
}

class PairListsCaseTest : public testing::TestWithParam<std::string> {};

TEST_P(PairListsCaseTest, IsTheNetwork) {
  const Network network = network_called(GetParam());
  const Weights weights = initial_weights(network, Key{1});
  const auto [c, h, w] = network.input;
  const Array images = uniform({2, c, h, w}, 2);
  expect_close(run_graph(make_graph(network, Family::kPairs), weights, images),
               reference_logits(network, weights, images), 1e-5, "logits");
}

TEST_P(PairListsCaseTest, ListsTheSamePairsThreeTimes) {
  for (const NodePairs& stage : all_pairs(graph_of(GetParam()))) {
    std::set<std::array<int, 3>> by_output, by_input, by_tap;  // input, output, tap
    for (size_t o = 0; o < stage.by_output.size(); ++o) {
      for (const Pair& p : stage.by_output[o]) by_output.insert({p.left, int(o), p.right});
    }
    for (size_t i = 0; i < stage.by_input.size(); ++i) {
      for (const Pair& p : stage.by_input[i]) by_input.insert({int(i), p.left, p.right});
    }
    for (size_t t = 0; t < stage.by_tap.size(); ++t) {
      for (const Pair& p : stage.by_tap[t]) by_tap.insert({p.left, p.right, int(t)});
    }
    EXPECT_EQ(by_output, by_input);
    EXPECT_EQ(by_output, by_tap);
    EXPECT_FALSE(by_output.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, PairListsCaseTest,
                         testing::Values("alexnet", "small", "odd", "pools"),
                         [](const auto& info) { return info.param; });

std::string refusal(const Network& network) { return graph_refusal(network, Family::kPairs); }

TEST(PairListsTest, NamesTheStageThatItDoesNotKnow) {
  EXPECT_EQ(refusal(network_called("alexnet")), "");
  EXPECT_EQ(refusal(network_called("resnet20")),
            "stage conv1 (conv, batch-norm, relu) has batch-norm, which this engine does not "
            "compute");
  EXPECT_EQ(refusal(network_called("alexnet-fc")),
            "stage features.10 (conv, relu, max-pool, dropout) has dropout, which this engine does "
            "not compute");
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(PairListsCaseTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
TEST(PairListsTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
