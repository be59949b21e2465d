#include "fedsmooth/model/architectures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fedsmooth/engine/reference/reference_passes.h"
#include "tests/arrays.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

const Shape kCifar = {3, 32, 32};

Network named(const std::string& name, const Shape& input = kCifar, int64_t classes = 10) {
  ModelOptions options{.name = name};
  set_default_normalization(options, "cifar10", input[0]);
  return build_network(options, input, classes);
}

class ArchitecturesTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ArchitecturesTest, GivesOneLogitPerClass) {
  const Network network = named(GetParam());
  EXPECT_EQ(output_shape(network), (Shape{10, 1, 1}));
  if (count_weights(network) > 30'000'000) return;  // a pass takes seconds
  const Weights weights = initial_weights(network, Key{1});
  const Array logits = reference_logits(network, weights, rising({2, 3, 32, 32}));
  EXPECT_EQ(logits.sizes(), (Sizes{2, 10}));
  for (const float logit : values_of(logits)) EXPECT_TRUE(std::isfinite(logit));
}

TEST_P(ArchitecturesTest, FollowsTheNumberOfClasses) {
  EXPECT_EQ(output_shape(named(GetParam(), kCifar, 43)), (Shape{43, 1, 1}));
}

INSTANTIATE_TEST_SUITE_P(All, ArchitecturesTest, ::testing::ValuesIn(architecture_names()),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// The table of the CIFAR AlexNet without hidden linear layers: what each layer gives and weighs.
TEST(ArchitecturesTest, AlexNetIsThePublishedOne) {
  struct Row {
    Kind kind;
    Shape output;
    int64_t weights;
  };
  const std::vector<Row> expected = {
      {Kind::kConv, {64, 8, 8}, 23'296},   {Kind::kMaxPool, {64, 4, 4}, 0},
      {Kind::kConv, {192, 4, 4}, 307'392}, {Kind::kMaxPool, {192, 2, 2}, 0},
      {Kind::kConv, {384, 2, 2}, 663'936}, {Kind::kConv, {256, 2, 2}, 884'992},
      {Kind::kConv, {256, 2, 2}, 590'080}, {Kind::kMaxPool, {256, 1, 1}, 0},
      {Kind::kLinear, {10, 1, 1}, 2'570}};
  size_t row = 0;
  Shape shape = kCifar;
  for (const Layer& layer : named("alexnet").layers) {
    const int64_t weights = count_weights({"one layer", shape, {layer}});
    shape = shape_after(layer, shape);
    if (layer.kind == Kind::kNormalize || layer.kind == Kind::kRelu) continue;
    ASSERT_LT(row, expected.size());
    EXPECT_EQ(layer.kind, expected[row].kind) << row;
    EXPECT_EQ(shape, expected[row].output) << row;
    EXPECT_EQ(weights, expected[row].weights) << row;
    ++row;
  }
  EXPECT_EQ(row, expected.size());
}

// Three stages of n blocks with two 3x3 convolutions each; batch norm has two weights a channel.
int64_t resnet_weights(int64_t n, int64_t classes) {
  int64_t count = 9 * 3 * 16 + 2 * 16;
  for (const int64_t c : {16, 32, 64}) count += n * (2 * 9 * c * c + 2 * 2 * c);
  for (const int64_t c : {32, 64}) {
    count -= 9 * c * c / 2;      // the stage's first convolution takes half the channels
    count += c * c / 2 + 2 * c;  // and its shortcut projects
  }
  return count + 64 * classes + classes;
}

TEST(ArchitecturesTest, HaveThePublishedNumbersOfWeights) {
  EXPECT_EQ(count_weights(named("alexnet")), 2'472'266);
  EXPECT_EQ(count_weights(named("alexnet-fc")), 23'272'266);
  EXPECT_EQ(count_weights(named("resnet20")), 272'474);
  EXPECT_EQ(count_weights(named("resnet110")), 1'730'714);
  EXPECT_EQ(count_weights(named("small")), 26'922);
  EXPECT_EQ(count_weights(named("resnet18")), 11'173'962);
  EXPECT_EQ(count_weights(named("vgg16-bn")), 14'728'266);
  EXPECT_EQ(count_weights(named("wrn-10-1")), 77'850);
  EXPECT_EQ(count_weights(named("wrn-16-4")), 2'748'890);
  EXPECT_EQ(count_weights(named("wrn-28-10")), 36'479'194);
}

TEST(ArchitecturesTest, ResNetsFollowTheirFormula) {
  EXPECT_EQ(count_weights(named("resnet20")), resnet_weights(3, 10));
  EXPECT_EQ(count_weights(named("resnet110")), resnet_weights(18, 10));
}

TEST(ArchitecturesTest, TensorsAreCalledAsInPyTorch) {
  std::vector<std::string> names;
  for (const Parameter& p : parameters(named("alexnet"))) names.push_back(p.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"features.0.weight", "features.0.bias", "features.3.weight",
                                      "features.3.bias", "features.6.weight", "features.6.bias",
                                      "features.8.weight", "features.8.bias", "features.10.weight",
                                      "features.10.bias", "classifier.weight", "classifier.bias"}));
}

TEST(ArchitecturesTest, NormalisesFirst) {
  const Layer layer = named("small").layers.front();
  EXPECT_EQ(layer.kind, Kind::kNormalize);
  EXPECT_EQ(layer.mean, (std::vector<double>{0.4914, 0.4822, 0.4465}));
  EXPECT_EQ(layer.sd, (std::vector<double>{0.2023, 0.1994, 0.2010}));
}

TEST(ArchitecturesTest, UnknownDataGetTheDefaultNormalisation) {
  ModelOptions options;
  set_default_normalization(options, "shapes", 2);
  EXPECT_EQ(options.mean, (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(options.sd, (std::vector<double>{0.25, 0.25}));
}

TEST(ArchitecturesTest, KeepsTheUsersNormalisation) {
  ModelOptions options{.mean = {0.1}, .sd = {0.2}};
  set_default_normalization(options, "cifar10", 3);
  EXPECT_EQ(options.mean, std::vector<double>{0.1});
  EXPECT_EQ(options.sd, std::vector<double>{0.2});
}

TEST(ArchitecturesTest, BuildsTheUsersLayers) {
  const ModelOptions options{"layers", {0.5}, {0.25}, {{Kind::kLinear, "only", 4}}};
  const Network network = build_network(options, {1, 2, 2}, 4);
  EXPECT_EQ(network.layers.size(), 2u);
  EXPECT_EQ(count_weights(network), 4 * 4 + 4);
}

TEST(ArchitecturesTest, RefusesANameThatItDoesNotKnow) {
  EXPECT_EQ(refusal([] { named("alexnet2"); }),
            "model.name=\"alexnet2\": no such network; there are alexnet, alexnet-fc, resnet18, "
            "resnet20, resnet110, small, vgg16-bn, wrn-16-4, wrn-28-10 and layers");
}

TEST(ArchitecturesTest, RefusesImagesThatAreTooSmall) {
  EXPECT_EQ(
      refusal([] {
        named("small", {3, 8, 8});
      }),
      "network small does not take images [3, 8, 8]: network: layer \"max-pool\": a window of 2 "
      "does not fit a map of 1 with padding 0");
}

TEST(ArchitecturesTest, RefusesLayersThatGiveAnotherNumberOfClasses) {
  const ModelOptions options{"layers", {0.5}, {0.25}, {{Kind::kLinear, "only", 4}}};
  EXPECT_EQ(refusal([&] {
              build_network(options, {1, 2, 2}, 10);
            }),
            "network layers: gives [4, 1, 1] for images [1, 2, 2], expected 10 classes");
}

TEST(ArchitecturesTest, RefusesLayersBesideTheNameOfANetwork) {
  ModelOptions options;
  options.name = "small";
  options.layers = {{Layer::Kind::kLinear, "fc", 10}};
  EXPECT_EQ(refusal([&] {
              build_network(options, {3, 32, 32}, 10);
            }),
            "model.layers: model.name=\"small\" has layers of its own; give "
            "model.name=\"layers\"");
}

}  // namespace
}  // namespace fedsmooth
