// How residual networks are cut into the kernels' stages, and which are refused.
#include <gtest/gtest.h>

#ifdef FEDSMOOTH_CUDA

#include <functional>

#include "fedsmooth/engine/cuda/residual_plan.h"
#include "fedsmooth/model/fold.h"
#include "tests/engine/cuda/residual_networks.h"
#include "tests/engine/unknown_parts.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

class ResidualPlanCaseTest : public testing::TestWithParam<std::string> {};

TEST_P(ResidualPlanCaseTest, CutsWhereTheShapeChanges) {
  const std::string name = GetParam();
  const size_t n = (std::stoul(name.substr(6)) - 2) / 6;
  const ResidualPlan plan = plan_residual(fold_batch_norm(residual_model(name, false)));
  EXPECT_EQ(plan.stem.name, "conv1");
  EXPECT_EQ(plan.classes, 10);
  for (int stage = 0; stage < 3; ++stage) {
    const PlannedStage& planned = plan.stages[stage];
    const int channels = 16 << stage;
    EXPECT_EQ(planned.layers.size(), stage == 0 ? 2 * n : 2 * n - 1);
    for (const PlannedConv& conv : planned.layers) {
      EXPECT_EQ(conv.weight.sizes(), (Sizes{channels, channels, 3, 3})) << conv.name;
      EXPECT_EQ(conv.bias.sizes(), Sizes{channels}) << conv.name;
    }
    const std::string block = "layer" + std::to_string(stage + 1);
    EXPECT_EQ(planned.layers.front().name, block + (stage == 0 ? ".0.conv1" : ".0.conv2"));
    EXPECT_EQ(planned.layers.back().name, block + "." + std::to_string(n - 1) + ".conv2");
    if (stage == 2) continue;
    const std::string next = "layer" + std::to_string(stage + 2);
    EXPECT_EQ(planned.enter.name, next + ".0.conv1");
    EXPECT_EQ(planned.enter.weight.sizes(), (Sizes{2 * channels, channels, 3, 3}));
    EXPECT_EQ(planned.shortcut.name, name.ends_with("-a") ? "" : next + ".0.downsample.0");
    EXPECT_EQ(planned.shortcut.weight.sizes(), (Sizes{2 * channels, channels, 1, 1}));
  }
}

INSTANTIATE_TEST_SUITE_P(ResNets, ResidualPlanCaseTest,
                         testing::Values("resnet8", "resnet8-a", "resnet20", "resnet20-a",
                                         "resnet110", "resnet110-a"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

// Folding rounds weights to float32, and the plan's normalisation is in float32.
TEST(ResidualPlanTest, IsTheNetwork) {
  for (const std::string name : {"resnet8", "resnet8-a"}) {
    const Model model = residual_model(name, /*statistics=*/true);
    const Array images = uniform({2, 3, 32, 32}, 5);
    const ResidualPlan plan = plan_residual(fold_batch_norm(model));
    const std::vector<double> found = PlainPlan(plan, Rounding::kNone).logits(images);
    EXPECT_LT(worst_row(found, exact_logits(model, images)), 1e-5) << name;
  }
}

TEST(ResidualPlanTest, StagesMayDifferInLength) {
  Network network = fold_batch_norm(residual_model("resnet20", false)).network;
  // Layers 0-2 are normalisation, convolution and ReLU; then blocks with a ReLU each.
  network.layers.erase(network.layers.begin() + 3, network.layers.begin() + 5);
  EXPECT_EQ(residual_refusal(network), "");
}

std::string refusal_after(const std::function<void(Network&)>& change) {
  Network network = fold_batch_norm(residual_model("resnet8", false)).network;
  change(network);
  return residual_refusal(network);
}

TEST(ResidualPlanTest, RefusesUnknownParts) {
  for (const char* name : {"resnet8", "resnet8-a"}) {
    expect_refusals(residual_refusal, fold_batch_norm(residual_model(name, false)).network);
  }
}

TEST(ResidualPlanTest, RefusesByName) {
  EXPECT_EQ(refusal_after([](Network&) {}), "");
  EXPECT_EQ(refusal_after([](Network& n) {
              n.input = {3, 64, 64};
            }),
            "its images are [3, 64, 64], not [3, 32, 32]");
  EXPECT_EQ(refusal_after([](Network& n) { n.layers[1].kernel = 1, n.layers[1].padding = 0; }),
            "stage conv1 (conv, relu) is not a 3x3 convolution with stride 1 to 16 channels, "
            "a ReLU");
  EXPECT_EQ(refusal_after([](Network& n) {
              n.layers[3].body[2].kernel = 5, n.layers[3].body[2].padding = 2;
            }),
            "stage layer1.0.conv2 (conv, sum, relu) is not a 3x3 convolution with stride 1 to 16 "
            "channels, the block's sum, a ReLU");
  EXPECT_EQ(refusal_after([](Network& n) { n.layers[5].body[0].outputs = 64; }),
            "stage layer2.0.conv1 (conv, relu) is not a 3x3 convolution with stride 2 to 32 "
            "channels, a ReLU");
  EXPECT_EQ(refusal_after([](Network& n) {
              n.layers[5].body[0].stride = n.layers[5].shortcut[0].stride = 1;
            }),
            "stage layer2.0.downsample.0 (conv) is not a 1x1 convolution with stride 2 to 32 "
            "channels");
  EXPECT_EQ(refusal_after([](Network& n) { n.layers[3].body[1] = {Kind::kDropout}; }),
            "stage layer1.0.conv1 (conv, dropout) is not a 3x3 convolution with stride 1 to 16 "
            "channels, a ReLU");
  EXPECT_EQ(refusal_after([](Network& n) { n.layers[3].shortcut = {{Kind::kRelu}}; }),
            "stage 3.shortcut.0 (relu) is not a 3x3 convolution with stride 1 to 16 channels, "
            "a ReLU");
  EXPECT_EQ(refusal_after([](Network& n) { n.layers[4] = {Kind::kDropout}; }),
            "stage layer1.0.conv2 (conv, sum, dropout) is not a 3x3 convolution with stride 1 to "
            "16 channels, the block's sum, a ReLU");
  EXPECT_EQ(refusal_after([](Network& n) {
              n.layers[9] = {Kind::kMaxPool, "", 0, 8, 8};
            }),
            "stage layer3.0.conv2 (conv, sum, relu, max-pool) is not a 3x3 convolution with "
            "stride 1 to 64 channels, the block's sum, a ReLU");
  EXPECT_EQ(refusal_after([](Network& n) { n.layers.erase(n.layers.begin() + 9); }),
            "stage fc (linear) is not the mean over all pixels, before the linear layer");
  EXPECT_EQ(refusal_after([](Network& n) { n.layers.back().outputs = 1000; }),
            "stage fc (linear) has 1000 classes, more than 128");
  EXPECT_EQ(refusal_after([](Network& n) { n.layers.push_back({Kind::kRelu}); }),
            "stage fc (linear, relu) is not a linear layer at the end");
  EXPECT_EQ(refusal_after(
                [](Network& n) { n.layers.push_back(n.layers[10]), n.layers[11].name = "more"; }),
            "stage more (linear) is not the last: nothing may follow the linear layer");
  EXPECT_EQ(refusal_after([](Network& n) { n.layers.resize(3); }),
            "it ends where a residual block: there must be three stages of them has to be");
}

TEST(ResidualPlanTest, RefusesBatchNormsThatAreNotFolded) {
  EXPECT_EQ(residual_refusal(residual_network("resnet20")),
            "stage conv1 (conv, batch-norm, relu) is not a 3x3 convolution with stride 1 to 16 "
            "channels, a ReLU");
}

TEST(ResidualPlanTest, RefusesOtherNetworks) {
  for (const std::string name : {"alexnet", "small", "resnet18", "vgg16-bn", "wrn-16-4"}) {
    EXPECT_NE(residual_refusal(residual_network(name)), "") << name;
  }
}

}  // namespace
}  // namespace fedsmooth

#else
TEST(ResidualPlanTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
TEST(ResidualPlanCaseTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
