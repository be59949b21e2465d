// The names of residual networks, their blocks, and the shortcut without weights.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fedsmooth/base/error.h"
#include "fedsmooth/config/experiment.h"
#include "fedsmooth/engine/reference/layers.h"
#include "fedsmooth/model/architectures.h"
#include "fedsmooth/model/network_json.h"
#include "fedsmooth/model/residual_networks.h"
#include "fedsmooth/model/stages.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

Network named(const std::string& name) {
  return build_network({name, {0.5, 0.5, 0.5}, {1, 1, 1}}, {3, 32, 32}, 10);
}

TEST(ResNetTest, HasAnyDepthOfSixNAndTwo) {
  for (const std::string name : {"resnet8", "resnet20", "resnet56-a", "resnet20-gn", "resnet20-ws",
                                 "resnet20-gn-ws", "resnet110", "resnet1202"}) {
    EXPECT_TRUE(is_residual_network(name)) << name;
  }
  for (const std::string name :
       {"resnet", "resnet2", "resnet19", "resnet18-gn", "resnet-4", "resnet20b", "resnet8 ",
        "resnet20-", "resnet20-g", "resnet20-gn-a", "resnet20-a-ws", "resnet20-ws-gn",
        "resnet20-ws-ws", "resnet1208", "resnet99999999999999999999", "ResNet20"}) {
    EXPECT_FALSE(is_residual_network(name)) << name;
    EXPECT_THROW(named(name), Error) << name;
  }
  EXPECT_EQ(count_weights(named("resnet32")) - count_weights(named("resnet26")),
            2 * 9 * (16 * 16 + 32 * 32 + 64 * 64) + 4 * (16 + 32 + 64));
}

// Its projections have 32 x 16 and 64 x 32 weights and two of a batch norm for each channel.
TEST(ResNetTest, PaddingShortcutsHaveNoWeights) {
  EXPECT_EQ(count_weights(named("resnet20")) - count_weights(named("resnet20-a")),
            32 * 16 + 64 * 32 + 2 * (32 + 64));
  EXPECT_EQ(output_shape(named("resnet20-a")), (Shape{10, 1, 1}));
}

// A group norm has a batch norm's two trained tensors and no running statistics.
TEST(ResNetTest, GroupNormsReplaceBatchNorms) {
  const Network network = named("resnet20-gn"), other = named("resnet20");
  EXPECT_EQ(count_weights(network), count_weights(other));
  EXPECT_EQ(network.layers[2].kind, Kind::kGroupNorm);
  EXPECT_EQ(network.layers[2].groups, 8);
  for (const Parameter& p : parameters(network)) EXPECT_TRUE(p.trained) << p.name;
  const Network again = network_from_json(to_json(network), "m");
  EXPECT_EQ(to_json(again), to_json(network));
  EXPECT_EQ(again.layers[2].groups, 8);
}

TEST(ResNetTest, EveryConvolutionMayStandardize) {
  for (const std::string name : {"resnet8-ws", "resnet8-gn-ws"}) {
    int convolutions = 0;
    for (const Stage& stage : stages_of(named(name))) {
      if (!stage.is_op(Kind::kConv)) continue;
      EXPECT_TRUE(stage.op->standardize) << stage.name;
      EXPECT_EQ(stage.is_norm(Kind::kGroupNorm), name == "resnet8-gn-ws");
      ++convolutions;
    }
    EXPECT_EQ(convolutions, 1 + 3 * 2 + 2) << name;
    EXPECT_EQ(count_weights(named(name)), count_weights(named("resnet8")));
  }
}

TEST(ResNetTest, AnExperimentMayNameAnyDepth) {
  EXPECT_EQ(parse_experiment("model.name = \"resnet32-a\"", "e.toml").model.name, "resnet32-a");
  EXPECT_THROW(parse_experiment("model.name = \"resnet21\"", "e.toml"), Error);
}

TEST(ResNetTest, RefusesOtherDepthsByName) {
  EXPECT_EQ(refusal([] { named("resnet21"); }),
            "model.name=\"resnet21\": a ResNet has 6 n + 2 layers, from 8 to 1202, or is resnet18");
  EXPECT_EQ(refusal([] { parse_experiment("model.name = \"resnet21\"", "e.toml"); }),
            "e.toml:1: model.name: a ResNet has 6 n + 2 layers, from 8 to 1202, or is resnet18");
}

TEST(WideResNetTest, HasAnyDepthOfSixNAndFour) {
  for (const std::string name : {"wrn-10-1", "wrn-16-4", "wrn-28-10", "wrn-40-2", "wrn-1204-1"}) {
    EXPECT_TRUE(is_residual_network(name)) << name;
    EXPECT_EQ(depth_refusal(name), "") << name;
  }
  EXPECT_EQ(parse_experiment("model.name = \"wrn-22-8\"", "e.toml").model.name, "wrn-22-8");
}

TEST(WideResNetTest, RefusesOtherDepthsByName) {
  const std::string why =
      "a Wide ResNet wrn-D-K has D = 6 n + 4 layers, from 10 to 1204, and K from 1 to 100";
  for (const std::string name : {"wrn-17-4", "wrn-4-1", "wrn-28-0", "wrn-28-101", "wrn-1210-1"}) {
    EXPECT_EQ(refusal([&] { named(name); }), "model.name=\"" + name + "\": " + why);
    EXPECT_EQ(refusal([&] { parse_experiment("model.name = '" + name + "'", "e.toml"); }),
              "e.toml:1: model.name: " + why);
  }
  for (const std::string name : {"wrn", "wrn-", "wrn-16", "wrn-16-", "wrn-16-4-1", "wrn-016-4",
                                 "wrn-16-4 ", "WRN-16-4", "wrn-16--4", "wrn16-4"}) {
    EXPECT_FALSE(is_residual_network(name)) << name;
    EXPECT_THROW(named(name), Error) << name;
  }
}

// A block of equal shape adds its input. One that changes the shape projects the activated input.
TEST(WideResNetTest, BlocksActivateBeforeTheyConvolve) {
  const std::vector<Layer> layers = named("wrn-16-1").layers;
  const auto kinds = [](const std::vector<Layer>& of) {
    std::vector<std::string> found;
    for (const Layer& layer : of) found.push_back(kind_name(layer.kind));
    return found;
  };
  using Kinds = std::vector<std::string>;
  EXPECT_EQ(kinds(layers), (Kinds{"normalize", "conv", "residual", "residual", "batch-norm", "relu",
                                  "residual", "residual", "batch-norm", "relu", "residual",
                                  "residual", "batch-norm", "relu", "avg-pool", "linear"}));
  EXPECT_EQ(kinds(layers[2].body),
            (Kinds{"batch-norm", "relu", "conv", "batch-norm", "relu", "conv"}));
  EXPECT_TRUE(layers[2].shortcut.empty());
  EXPECT_EQ(layers[4].name, "block2.layer.0.bn1");
  EXPECT_EQ(kinds(layers[6].body), (Kinds{"conv", "batch-norm", "relu", "conv"}));
  EXPECT_EQ(kinds(layers[6].shortcut), Kinds{"conv"});
  EXPECT_EQ(layers[6].shortcut[0].name, "block2.layer.0.convShortcut");
  EXPECT_EQ(layers[6].shortcut[0].stride, 2);
}

TEST(ResNetTest, IsReadBackFromItsDescription) {
  const Network network = named("resnet8-a");
  const Network again = network_from_json(to_json(network), "m");
  EXPECT_EQ(to_json(again), to_json(network));
  EXPECT_EQ(again.layers[6].shortcut.at(0).kind, Kind::kSubsample);
}

TEST(SubsampleTest, KeepsEveryStridethPixelAndAppendsZeroChannels) {
  const Layer layer{Kind::kSubsample, "", 3, 1, 2};
  reference::Map<double> x(1, {2, 3, 3});
  for (size_t i = 0; i < x.values.size(); ++i) x.values[i] = static_cast<double>(i + 1);
  const Shape out = shape_after(layer, x.shape);
  EXPECT_EQ(out, (Shape{3, 2, 2}));
  const auto y = reference::subsample(layer, x, out);
  EXPECT_EQ(y.values, (std::vector<double>{1, 3, 7, 9, 10, 12, 16, 18, 0, 0, 0, 0}));
  const auto dx = reference::subsample_back(layer, y, x.shape);
  EXPECT_EQ(dx.values,
            (std::vector<double>{1, 0, 3, 0, 0, 0, 7, 0, 9, 10, 0, 12, 0, 0, 0, 16, 0, 18}));
}

TEST(SubsampleTest, LosesNoChannels) {
  EXPECT_THROW(shape_after({Kind::kSubsample, "", 3, 1, 2}, {4, 8, 8}), Error);
}

}  // namespace
}  // namespace fedsmooth
