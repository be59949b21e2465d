#ifdef FEDSMOOTH_CUDA

#include "fedsmooth/engine/cuda/graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>

#include "fedsmooth/engine/cuda/kernels/rows/row_convolution.h"
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
    EXPECT_NE(node.scale, node.norm_bias) << node.name;
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
  const Layer conv = conv_called("a"), relu{Kind::kRelu};
  const Layer wide{Kind::kConv, "wide", 2049, 3, 1, 1}, large{Kind::kConv, "large", 16, 17, 1, 8};
  const Layer far{Kind::kConv, "far", 16, 3, 3, 1}, padded{Kind::kConv, "padded", 16, 3, 1, 3};
  const Layer norm{Kind::kBatchNorm, "norm"};
  EXPECT_EQ(row_refusal(list_of({wide})),
            "stage wide (conv, avg-pool) has 2049 channels, more than 2048");
  EXPECT_EQ(row_refusal(list_of({large})),
            "stage large (conv, avg-pool) has a kernel of 17x17, larger than 16x16");
  EXPECT_EQ(row_refusal(list_of({far})),
            "stage far (conv, avg-pool) has a stride of 3, more than 2");
  EXPECT_EQ(row_refusal(list_of({padded})),
            "stage padded (conv, avg-pool) has padding of 3, not less than its kernel of 3x3");
  EXPECT_EQ(row_refusal(list_of({Layer{Kind::kSubsample, "", 16, 1, 2}, norm})),
            "stage 1 (subsample, batch-norm, avg-pool) has a norm behind a subsample");
  EXPECT_EQ(row_refusal(list_of({Layer{Kind::kLinear, "hidden", 32}})),
            "stage hidden (linear, avg-pool) reads a map of 32x32 pixels, larger than 16x16");
  EXPECT_EQ(row_refusal(list_of({relu, conv})),
            "stage 0 (normalize, relu) is not a normalisation alone");
  // A block whose body reads the images themselves.
  Network beside = list_of({});
  beside.layers[0] = residual({conv_called("b")}, {beside.layers[0]});
  beside.layers[0].body[0].outputs = 3;
  EXPECT_EQ(row_refusal(beside),
            "stage b (conv, sum, avg-pool): the first stage, and no other, has to normalise the "
            "images");
  Network oblong = list_of({conv, Layer{Kind::kAvgPool}, conv_called("b")});
  oblong.input = {3, 12, 10};
  EXPECT_EQ(
      row_refusal(oblong),
      "stage a (conv, avg-pool) takes the mean of a map of 12x10 pixels, which must be square "
      "unless only the last layer follows");
  Network dropped = list_of({conv});
  dropped.input = oblong.input;
  dropped.layers.insert(dropped.layers.end() - 1, {Kind::kDropout, "dropout"});
  EXPECT_EQ(row_refusal(dropped),
            "stage a (conv, avg-pool, dropout) takes the mean of a map of 12x10 pixels, which must "
            "be square unless only the last layer follows");
  oblong.layers[2] = relu;
  oblong.layers[3] = {Kind::kLinear, "b", 32};
  EXPECT_EQ(row_refusal(oblong),
            "stage b (linear, avg-pool) reads a map of 12x10 pixels, which is not square");
  EXPECT_NE(row_refusal(named_network("alexnet")), "");
}

const GraphNode& node_called(const GpuGraph& graph, const std::string& name) {
  return *std::ranges::find(graph.nodes, name, &GraphNode::name);
}

TEST(GraphTest, LowersWideNetworks) {
  for (const char* name : {"resnet18", "wrn-16-4", "wrn-28-10", "vgg16-bn"}) {
    EXPECT_EQ(row_refusal(named_network(name)), "") << name;
  }
}

// Convolutions from 64 channels to 64 join those that only the wide kernels run.
TEST(GraphTest, MarksWideNodes) {
  const GpuGraph graph = row_graph(named_network("resnet18"));
  EXPECT_FALSE(graph.nodes[0].wide);  // from 16 channels, filled up, to 64
  for (const GraphNode& node : graph.nodes) {
    if (!node.convolves() || &node == &graph.nodes[0]) continue;
    EXPECT_TRUE(node.wide) << node.name;
    EXPECT_FALSE(node.paired) << node.name;
    EXPECT_GE(node.weight, graph.wide) << node.name;
    EXPECT_LE(node.weight + node.kernel_size(), graph.working) << node.name;
  }
  for (const GraphNode& node : row_graph(named_network("resnet20")).nodes) {
    EXPECT_FALSE(node.wide) << node.name;
  }
}

// A network of 64 channels is for the other kernels, unless its maps have too many lines for them.
TEST(GraphTest, MarksConvolutionsOfLargeMapsWide) {
  const Layer a{Kind::kConv, "a", 64, 3, 1, 1}, b{Kind::kConv, "b", 64, 3, 1, 1};
  Network network = list_of({a, b});
  network.layers[0] = normalize({0.5}, {0.5});
  network.input = {1, 8, 8};
  EXPECT_FALSE(row_graph(network).nodes[1].wide);
  network.input = {1, 187, 64};
  EXPECT_TRUE(row_graph(network).nodes[1].wide);
}

// Small GPUs are those of compute capability 8.6 and 8.9, whose thread blocks have 99 KB of memory.
TEST(GraphTest, SmallGpusRunCifarResNetsByTheKernelsForFewChannels) {
  constexpr int kLimit = 99 * 1024;
  for (const GraphNode& node : row_graph(named_network("resnet20")).nodes) {
    if (!node.convolves()) continue;
    RowConvolution c;
    c.rows = 128;
    c.in = node.in;
    c.out = node.out;
    c.kernel = node.kernel;
    c.stride = node.stride;
    c.padding = node.padding;
    EXPECT_TRUE(convolution_fits(c, kLimit)) << node.name;
    EXPECT_TRUE(convolution_fits(backward_of(c), kLimit)) << node.name;
    EXPECT_TRUE(kernel_gradient_fits(c, kLimit)) << node.name;
  }
}

TEST(GraphTest, FillsChannelsUpToAMultipleOf32) {
  const GpuGraph graph = row_graph(list_of({Layer{Kind::kConv, "a", 65, 3, 1, 1}}));
  EXPECT_EQ(graph.nodes[0].out.channels, 96);
  EXPECT_TRUE(graph.nodes[0].wide);
}

TEST(GraphTest, PoolsAndNormsAreNodes) {
  const GpuGraph graph = row_graph(named_network("vgg16-bn"));
  EXPECT_EQ(graph.nodes.size(), 13u + 5 + 1);
  EXPECT_TRUE(graph.nodes[2].has_pool());
  EXPECT_EQ(graph.nodes[2].out.height, 16);
  EXPECT_EQ(graph.head().taps(), 1);
  const GpuGraph preactivated = row_graph(named_network("wrn-10-1"));
  const GraphNode& norm = node_called(preactivated, "block1.layer.0.bn1");
  EXPECT_EQ(norm.name, "block1.layer.0.bn1");
  EXPECT_EQ(norm.op, GraphNode::Op::kNone);
  EXPECT_TRUE(norm.has_batch_norm());
  EXPECT_TRUE(norm.relu);
}

TEST(GraphTest, LowersHiddenLinearLayersAsConvolutions) {
  const Layer hidden{Kind::kLinear, "b", 20}, relu{Kind::kRelu};
  const GpuGraph graph = row_graph(list_of(
      {Layer{Kind::kConv, "a", 16, 3, 2, 1}, relu, Layer{Kind::kMaxPool, "", 0, 3, 2}, hidden}));
  const GraphNode& node = node_called(graph, "b");
  EXPECT_TRUE(node.convolves());
  EXPECT_TRUE(node.wide);
  EXPECT_EQ(node.kernel, 7);  // of 32, 16 and 7 pixels
  EXPECT_EQ(node.out.channels, 32);
  EXPECT_EQ(node.out.pixels(), 1);
}

TEST(GraphTest, AFlatHeadReadsTheWholeMap) {
  Network network = list_of({Layer{Kind::kConv, "a", 16, 3, 2, 1}});
  network.layers.erase(network.layers.end() - 2);
  const GraphNode head = row_graph(network).head();
  EXPECT_FALSE(head.of_mean);
  EXPECT_EQ(head.taps(), 256);
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(GraphTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
