#include "fedsmooth/model/stages.h"

#include <gtest/gtest.h>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/model/network_json.h"
#include "tests/engine/networks.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

std::vector<std::string> descriptions(const std::vector<Stage>& stages) {
  std::vector<std::string> found;
  for (const Stage& stage : stages) found.push_back(describe(stage));
  return found;
}

using Strings = std::vector<std::string>;

Layer named_conv(const std::string& name, int64_t outputs = 2) {
  return layer(Kind::kConv, name, outputs, 3, 1, 1);
}

const Layer kRelu = layer(Kind::kRelu, ""), kMean = layer(Kind::kAvgPool, ""),
            kDropout = layer(Kind::kDropout, ""), kNorm = layer(Kind::kBatchNorm, "norm");

std::vector<Stage> lower(std::vector<Layer> layers) {
  return stages_of({"test", {2, 4, 4}, std::move(layers)});
}

TEST(StagesTest, AChainIsFusedInOrder) {
  EXPECT_EQ(descriptions(stages_of(named_network("small"))),
            (Strings{"0 (normalize)", "features.0 (conv, relu, max-pool)",
                     "features.3 (conv, relu, max-pool)", "features.6 (conv, relu, max-pool)",
                     "classifier (linear)"}));
  const std::vector<Stage> stages = stages_of(named_network("small"));
  for (size_t i = 0; i < stages.size(); ++i) {
    EXPECT_EQ(stages[i].input, static_cast<int>(i) - 1);
    EXPECT_FALSE(stages[i].saved);
    EXPECT_EQ(stages[i].in, i == 0 ? (Shape{3, 32, 32}) : stages[i - 1].out);
    EXPECT_EQ(stages[i].op_tensor, i == 0 ? 0 : 2 * (i - 1));
  }
  EXPECT_EQ(stages[1].map, (Shape{16, 16, 16}));
  EXPECT_EQ(stages[1].out, (Shape{16, 8, 8}));
}

TEST(StagesTest, APartOutOfOrderOpensANewStage) {
  EXPECT_EQ(descriptions(lower({kRelu, kNorm, kRelu, kMean, kRelu, kDropout, kDropout})),
            (Strings{"0 (relu)", "norm (batch-norm, relu, avg-pool)", "4 (relu, dropout)",
                     "6 (dropout)"}));
}

TEST(StagesTest, ABlocksLastStageAddsWhatTheShortcutGives) {
  const std::vector<Stage> stages = stages_of(named_network("resnet8"));
  EXPECT_EQ(
      descriptions(stages),
      (Strings{
          "0 (normalize)", "conv1 (conv, batch-norm, relu)",
          "layer1.0.conv1 (conv, batch-norm, relu)", "layer1.0.conv2 (conv, batch-norm, sum, relu)",
          "layer2.0.downsample.0 (conv, batch-norm)", "layer2.0.conv1 (conv, batch-norm, relu)",
          "layer2.0.conv2 (conv, batch-norm, sum, relu)",
          "layer3.0.downsample.0 (conv, batch-norm)", "layer3.0.conv1 (conv, batch-norm, relu)",
          "layer3.0.conv2 (conv, batch-norm, sum, relu, avg-pool)", "fc (linear)"}));
  EXPECT_EQ(stages[3].input, 2);
  EXPECT_EQ(stages[3].saved, 1);
  EXPECT_EQ(stages[4].input, 3);
  EXPECT_EQ(stages[5].input, 3);
  EXPECT_EQ(stages[6].input, 5);
  EXPECT_EQ(stages[6].saved, 4);
  EXPECT_EQ(stages[7].input, 6);
}

// Norms without an operation before them; blocks that add their input, and that project it.
TEST(StagesTest, PreActivationBlocksReadTheirNorms) {
  const std::vector<Stage> stages = stages_of(named_network("wrn-10-1"));
  EXPECT_EQ(
      descriptions(stages),
      (Strings{"0 (normalize)", "conv1 (conv)", "block1.layer.0.bn1 (batch-norm, relu)",
               "block1.layer.0.conv1 (conv, batch-norm, relu)", "block1.layer.0.conv2 (conv, sum)",
               "block2.layer.0.bn1 (batch-norm, relu)", "block2.layer.0.convShortcut (conv)",
               "block2.layer.0.conv1 (conv, batch-norm, relu)", "block2.layer.0.conv2 (conv, sum)",
               "block3.layer.0.bn1 (batch-norm, relu)", "block3.layer.0.convShortcut (conv)",
               "block3.layer.0.conv1 (conv, batch-norm, relu)", "block3.layer.0.conv2 (conv, sum)",
               "bn1 (batch-norm, relu, avg-pool)", "fc (linear)"}));
  EXPECT_EQ(stages[4].saved, 1);
  EXPECT_EQ(stages[5].input, 4);
  EXPECT_EQ(stages[6].input, 5);
  EXPECT_EQ(stages[7].input, 5);
  EXPECT_EQ(stages[8].saved, 6);
}

// Stages of a shortcut come first, its tensors last.
TEST(StagesTest, TensorsAreThoseOfParameters) {
  for (const std::string name : {"alexnet-fc", "resnet20", "resnet20-a", "resnet20-gn", "resnet18",
                                 "vgg16-bn", "wrn-16-4"}) {
    const Network network = named_network(name);
    const std::vector<Parameter> all = parameters(network);
    size_t tensors = 0;
    for (const Stage& stage : stages_of(network)) {
      for (const auto& [part, first] :
           {std::pair{&stage.op, stage.op_tensor}, {&stage.norm, stage.norm_tensor}}) {
        if (!*part || count_tensors(**part) == 0) continue;
        EXPECT_EQ(all.at(first).name, (*part)->name + ".weight");
        tensors += count_tensors(**part);
      }
    }
    EXPECT_EQ(tensors, all.size()) << name;
  }
}

TEST(StagesTest, DropoutsCountInTheOrderOfParameters) {
  const std::vector<Stage> stages =
      lower({kDropout, residual({named_conv("a"), kDropout}, {kRelu, kDropout}), kDropout});
  EXPECT_EQ(descriptions(stages), (Strings{"0 (dropout)", "1.shortcut.0 (relu, dropout)",
                                           "a (conv, dropout)", "1 (sum, dropout)"}));
  EXPECT_EQ(stages[0].dropout_sample, 0);
  EXPECT_EQ(stages[1].dropout_sample, 2);
  EXPECT_EQ(stages[2].dropout_sample, 1);
  EXPECT_EQ(stages[3].dropout_sample, 3);
}

TEST(StagesTest, BlocksMayBeEmptyAndInEachOther) {
  const std::vector<Stage> twice = lower({residual({}, {})});
  ASSERT_EQ(twice.size(), 1);
  EXPECT_EQ(twice[0].input, Stage::kImages);
  EXPECT_EQ(twice[0].saved, Stage::kImages);

  const std::vector<Stage> nested = lower(
      {named_conv("a"), residual({named_conv("b"), residual({named_conv("c")}, {})}, {}), kRelu});
  EXPECT_EQ(descriptions(nested),
            (Strings{"a (conv)", "b (conv)", "c (conv, sum)", "1 (sum, relu)"}));
  EXPECT_EQ(nested[2].saved, 1);
  EXPECT_EQ(nested[3].input, 2);
  EXPECT_EQ(nested[3].saved, 0);
}

TEST(StagesTest, PartsAreThoseOfAllLayers) {
  const std::vector<Stage> stages =
      lower({residual({named_conv("a"), kNorm}, {}), kRelu, kMean, kDropout});
  ASSERT_EQ(stages.size(), 1);
  EXPECT_EQ(stages[0].parts, (Parts{Part::kConv, Part::kBatchNorm, Part::kSum, Part::kRelu,
                                    Part::kAvgPool, Part::kDropout}));
  EXPECT_EQ(stages[0].activation, kRelu);
}

// A sum's name is its own; all others are called as in JSON.
TEST(StagesTest, EveryKindOfLayerIsAPart) {
  for (const auto& [name, kind] : layer_kinds()) {
    EXPECT_EQ(to_string(parts_of({kind})), kind == Kind::kResidual ? "sum" : name);
  }
}

TEST(StagesTest, StandardizingIsAPartOfItsOwn) {
  Layer conv = named_conv("a"), linear = layer(Kind::kLinear, "l", 2);
  conv.standardize = linear.standardize = true;
  EXPECT_EQ(descriptions(lower({residual({conv, kNorm}, {}), kRelu, linear})),
            (Strings{"a (conv, standardize, batch-norm, sum, relu)",
                     "l (standardize, linear, unknown property)"}));
}

TEST(StagesTest, APropertyOfAnotherKindIsRefusedByEveryEngine) {
  Layer conv = named_conv("a"), pool = layer(Kind::kMaxPool, "", 0, 2, 2);
  conv.groups = 2;
  pool.padding = 1;
  EXPECT_EQ(descriptions(lower({conv, kRelu, pool, kMean})),
            (Strings{"a (conv, relu, max-pool, unknown property)", "3 (avg-pool)"}));
  Layer block = residual({}, {});
  block.drop_rate = 0.5;
  EXPECT_EQ(descriptions(lower({block})), (Strings{"0 (sum, unknown property)"}));
}

TEST(StagesTest, NamesTheFirstStageWithAPartThatIsNotTaken) {
  const std::vector<Stage> stages = lower({named_conv("a"), kRelu, kNorm, kDropout});
  const Parts all = {Part::kConv, Part::kRelu, Part::kBatchNorm, Part::kDropout};
  EXPECT_EQ(parts_refusal(stages, all), "");
  EXPECT_EQ(parts_refusal(stages, all - Parts{Part::kRelu}),
            "stage a (conv, relu) has relu, which this engine does not compute");
  EXPECT_EQ(parts_refusal(stages, {Part::kConv, Part::kRelu}),
            "stage norm (batch-norm, dropout) has batch-norm, dropout, which this engine does not "
            "compute");
}

TEST(StagesTest, AnUnknownKindIsABug) { EXPECT_THROW(lower({Layer{static_cast<Kind>(99)}}), Bug); }

TEST(StagesTest, LayersThatDoNotFitAreRefused) {
  Layer odd = layer(Kind::kGroupNorm, "norm");
  odd.groups = 3;
  EXPECT_THROW(lower({odd}), Error);
  EXPECT_TRUE(lower({}).empty());
}

}  // namespace
}  // namespace fedsmooth
