#ifdef FEDSMOOTH_CUDA

#include "fedsmooth/engine/cuda/graph.h"

#include <gtest/gtest.h>

#include <set>
#include <span>

#include "tests/engine/networks.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

GpuGraph row_graph(const Network& network) { return make_graph(network, Family::kRows); }
std::string row_refusal(const Network& network) { return graph_refusal(network, Family::kRows); }

TEST(GraphTest, EveryWeightHasAPlaceOfItsOwn) {
  for (const char* name : {"resnet8", "resnet8-a", "resnet8-gn", "resnet20", "alexnet", "small"}) {
    const Network network = named_network(name);
    const Family family = row_refusal(network).empty() ? Family::kRows : Family::kPairs;
    const GpuGraph graph = make_graph(network, family);
    int64_t values = 0;
    for (const Parameter& p : parameters(network)) {
      int64_t count = 1;
      for (const int64_t size : p.shape) count *= size;
      values += count;
    }
    const std::set<int> places(graph.positions.begin(), graph.positions.end());
    EXPECT_EQ(std::ssize(graph.positions), values) << name;
    EXPECT_EQ(std::ssize(places), values) << name;
    EXPECT_LT(*places.rbegin(), graph.size);
  }
}

TEST(GraphTest, PutsAShortcutBeforeTheSumThatNeedsIt) {
  const GpuGraph graph = row_graph(named_network("resnet8"));
  ASSERT_EQ(graph.nodes.size(), 10u);  // the first, three blocks of two, two projections, linear
  const GraphNode &first = graph.nodes[3], &shortcut = graph.nodes[4], &second = graph.nodes[5];
  EXPECT_EQ(first.name, "layer2.0.conv1");
  EXPECT_EQ(shortcut.name, "layer2.0.downsample.0");
  EXPECT_EQ(second.name, "layer2.0.conv2");
  EXPECT_EQ(shortcut.input, first.input);
  EXPECT_EQ(second.shortcut, shortcut.output);
  EXPECT_TRUE(second.relu);
  EXPECT_FALSE(shortcut.relu);
  EXPECT_EQ(graph.nodes[2].shortcut, graph.nodes[0].output);  // the block's input itself
}

TEST(GraphTest, BlocksWithoutAProjectionArePairs) {
  const auto paired = [](const char* name) {
    std::vector<std::string> names;
    for (const GraphNode& node : row_graph(named_network(name)).nodes) {
      if (node.paired) names.push_back(node.name);
    }
    return names;
  };
  EXPECT_EQ(paired("resnet8"), (std::vector<std::string>{"layer1.0.conv1"}));
  EXPECT_EQ(paired("resnet14"), (std::vector<std::string>{"layer1.0.conv1", "layer1.1.conv1",
                                                          "layer2.1.conv1", "layer3.1.conv1"}));
  EXPECT_TRUE(paired("resnet14-gn").empty());
}

TEST(GraphTest, AShortcutWithoutWeightsIsAFixedKernel) {
  const GpuGraph graph = row_graph(named_network("resnet8-a"));
  const GraphNode& shortcut = graph.nodes[4];
  EXPECT_TRUE(shortcut.fixed);
  EXPECT_GE(shortcut.weight, graph.kernels);
  EXPECT_LE(shortcut.weight + shortcut.kernel_size(), graph.working);
}

TEST(GraphTest, AGroupNormHasNoStatistics) {
  const GpuGraph graph = row_graph(named_network("resnet8-gn"));
  EXPECT_EQ(graph.size, graph.trained);
  EXPECT_FALSE(graph.head().has_norm);
  for (const GraphNode& node : std::span(graph.nodes).first(graph.nodes.size() - 1)) {
    EXPECT_TRUE(node.has_group_norm()) << node.name;
    EXPECT_FALSE(node.has_batch_norm()) << node.name;
    EXPECT_EQ(node.groups.count, 8) << node.name;
    EXPECT_EQ(node.groups.real_channels(), node.out.channels) << node.name;
    EXPECT_NE(node.scale, node.bias) << node.name;
  }
  EXPECT_TRUE(row_graph(named_network("resnet8")).nodes[0].has_batch_norm());
}

Network list_of(std::vector<Layer> middle) {
  std::vector<Layer> layers = {normalize({0.5, 0.5, 0.5}, {0.5, 0.5, 0.5})};
  layers.insert(layers.end(), middle.begin(), middle.end());
  layers.push_back({Kind::kAvgPool});
  layers.push_back({Kind::kLinear, "end", 10});
  return {"list", {3, 32, 32}, layers};
}

TEST(GraphTest, GroupsAreOfRealChannels) {
  Layer conv{Kind::kConv, "a", 20, 3, 1, 1}, norm{Kind::kGroupNorm, "norm"};
  conv.bias = false;
  norm.groups = 5;
  const GraphNode node = row_graph(list_of({conv, norm})).nodes[0];
  EXPECT_EQ(node.out.channels, 32);
  EXPECT_EQ(node.groups.count, 5);
  EXPECT_EQ(node.groups.channels, 4);
}

TEST(GraphTest, NamesTheLayerThatItCannotTrain) {
  const auto conv_called = [](const char* name) { return Layer{Kind::kConv, name, 16, 3, 1, 1}; };
  const Layer conv = conv_called("a"), relu{Kind::kRelu}, with_dropout{Kind::kDropout};
  const Layer pool{Kind::kMaxPool, "", 0, 2, 2};
  const Layer wide{Kind::kConv, "wide", 128, 3, 1, 1}, large{Kind::kConv, "large", 16, 5, 1, 2};
  const Layer norm{Kind::kBatchNorm, "norm"};
  Layer plain = conv;
  plain.bias = false;
  EXPECT_EQ(row_refusal(list_of({plain, norm, relu})), "");
  EXPECT_EQ(row_refusal(list_of({conv, with_dropout, conv_called("b")})),
            "stage a (conv, dropout) has dropout, which this engine does not compute");
  EXPECT_EQ(row_refusal(list_of({wide})),
            "stage wide (conv, avg-pool) has 128 channels, more than 64");
  EXPECT_EQ(row_refusal(list_of({large})),
            "stage large (conv, avg-pool) has a kernel of 5x5, not 1x1 or 3x3");
  EXPECT_EQ(row_refusal(list_of({conv, norm})),
            "stage a (conv, batch-norm, avg-pool) has a norm of a convolution with a bias");
  EXPECT_EQ(row_refusal(list_of({plain, relu, norm})),
            "stage norm (batch-norm, avg-pool) does not begin with a convolution");
  EXPECT_EQ(row_refusal(list_of({relu, conv})),
            "stage 0 (normalize, relu) is not a normalisation alone");
  EXPECT_EQ(row_refusal(list_of({conv, pool, conv_called("b")})),
            "stage a (conv, max-pool) has max-pool, which this engine does not compute");
  EXPECT_EQ(row_refusal(list_of({conv, Layer{Kind::kAvgPool}, conv_called("b")})),
            "stage a (conv, avg-pool) takes the mean over all pixels before the end");
  // A block whose body reads the images themselves.
  Network beside = list_of({});
  beside.layers[0] = residual({conv_called("b")}, {beside.layers[0]});
  beside.layers[0].body[0].outputs = 3;
  EXPECT_EQ(row_refusal(beside),
            "stage b (conv, sum, avg-pool): the first stage, and no other, has to normalise the "
            "images");
  Layer block{Kind::kResidual};
  block.body = {plain, relu};
  EXPECT_EQ(row_refusal(list_of({conv_called("b"), block})),
            "stage 2 (sum, avg-pool) does not begin with a convolution");
  EXPECT_NE(row_refusal(named_network("alexnet")), "");
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(GraphTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
