#include "fedsmooth/model/network.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/model/refusal.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

Layer conv(int64_t outputs, int64_t kernel, int64_t stride, int64_t padding, bool bias) {
  Layer layer{Kind::kConv, "conv", outputs, kernel, stride, padding};
  layer.bias = bias;
  return layer;
}

Layer linear(int64_t outputs, bool bias) {
  Layer layer{Kind::kLinear, "linear", outputs};
  layer.bias = bias;
  return layer;
}

Layer normalize(std::vector<double> mean, std::vector<double> sd) {
  Layer layer{Kind::kNormalize};
  layer.mean = std::move(mean);
  layer.sd = std::move(sd);
  return layer;
}

Layer residual(std::vector<Layer> body, std::vector<Layer> shortcut) {
  Layer layer{Kind::kResidual};
  layer.body = std::move(body);
  layer.shortcut = std::move(shortcut);
  return layer;
}

Tensor values(std::vector<float> list, at::IntArrayRef shape) {
  return at::tensor(list).view(shape);
}

/// 1 to 9 as one image of one channel.
Tensor one_to_nine() { return at::arange(1, 10).to(at::kFloat).view({1, 1, 3, 3}); }

Network network_for(const Tensor& images, std::vector<Layer> layers) {
  return {"test", {images.size(1), images.size(2), images.size(3)}, std::move(layers)};
}

/// The logits of the layers on `images`, one row per image.
void expect_logits(std::vector<Layer> layers, const Weights& weights, const Tensor& images,
                   std::vector<float> expected) {
  const Network network = network_for(images, std::move(layers));
  const Tensor logits = forward(network, weights, images);
  EXPECT_EQ(logits.dim(), 2);
  EXPECT_EQ(logits.size(1), c10::multiply_integers(output_shape(network)));
  // The numbers are chosen so that float32 holds all of them; only batch norm divides by a root.
  EXPECT_TRUE(at::allclose(logits.flatten(), at::tensor(expected), /*rtol=*/1e-6, /*atol=*/0))
      << logits;
}

TEST(NetworkTest, NormalizesEachChannel) {
  expect_logits({normalize({0.5, 0}, {0.25, 2})}, {}, values({1, 4}, {1, 2, 1, 1}), {2, 2});
}

TEST(NetworkTest, ConvolvesWithoutFlippingTheKernel) {
  const Tensor kernel = values({1, 2, 3, 4}, {1, 1, 2, 2}), bias = values({10}, {1});
  expect_logits({conv(1, 2, 1, 0, true)}, {kernel, bias}, one_to_nine(), {47, 57, 77, 87});
}

TEST(NetworkTest, ConvolvesWithStrideAndZeroPadding) {
  const Tensor kernel = values({1, 2, 3, 4}, {1, 1, 2, 2});
  expect_logits({conv(1, 2, 2, 1, false)}, {kernel}, one_to_nine(), {4, 18, 36, 77});
}

TEST(NetworkTest, AddsUpChannelsInAConvolution) {
  const Tensor kernel = values({1, 10, 100, 1000}, {2, 2, 1, 1});
  expect_logits({conv(2, 1, 1, 0, false)}, {kernel}, values({2, 3}, {1, 2, 1, 1}), {32, 3200});
}

// (x - mean) / sqrt(variance + 1e-5) * weight + bias, with a root of 2.
TEST(NetworkTest, BatchNormUsesItsRunningStatistics) {
  const Weights weights = {values({3}, {1}), values({1}, {1}), values({1}, {1}),
                           values({4 - 1e-5f}, {1})};
  expect_logits({{Kind::kBatchNorm, "bn"}}, weights, values({5}, {1, 1, 1, 1}), {7});
}

TEST(NetworkTest, AnImagesLogitsDoNotDependOnItsNeighbours) {
  const Weights weights = {values({1}, {1}), values({0}, {1}), values({0}, {1}), values({1}, {1})};
  const Tensor image = one_to_nine(), neighbour = image * 100;
  const Network network = network_for(image, {{Kind::kBatchNorm, "bn"}});
  const Tensor alone = forward(network, weights, image);
  const Tensor together = forward(network, weights, at::cat({image, neighbour}));
  EXPECT_TRUE(at::equal(together[0], alone[0]));
}

TEST(NetworkTest, ReluCutsOffBelowZero) {
  expect_logits({{Kind::kRelu}}, {}, values({-1, 0, 2}, {1, 3, 1, 1}), {0, 0, 2});
}

TEST(NetworkTest, MaxPoolDropsWhatDoesNotFillAWindow) {
  expect_logits({{Kind::kMaxPool, "", 0, 2, 2}}, {}, one_to_nine(), {5});
}

TEST(NetworkTest, MaxPoolWindowsMayOverlap) {
  expect_logits({{Kind::kMaxPool, "", 0, 2, 1}}, {}, one_to_nine(), {5, 6, 8, 9});
}

TEST(NetworkTest, AvgPoolTakesTheWholeMap) {
  expect_logits({{Kind::kAvgPool}}, {}, one_to_nine(), {5});
}

TEST(NetworkTest, DropoutIsTheIdentity) {
  Layer dropout{Kind::kDropout};
  dropout.drop_rate = 0.9;
  expect_logits({dropout}, {}, values({1, 2}, {1, 2, 1, 1}), {1, 2});
}

TEST(NetworkTest, LinearFlattensChannelsThenRowsThenColumns) {
  const Tensor image = values({1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 2, 2});
  const Tensor weight = values({1e0, 1e1, 1e2, 1e3, 0, 0, 0, 1e4}, {1, 8});
  expect_logits({linear(1, false)}, {weight}, image, {84321});
  expect_logits({linear(1, true)}, {weight, values({-1}, {1})}, image, {84320});
}

TEST(NetworkTest, AResidualBlockWithoutShortcutAddsItsInput) {
  const Tensor twice = values({2}, {1, 1, 1, 1});
  expect_logits({residual({conv(1, 1, 1, 0, false)}, {})}, {twice}, values({5}, {1, 1, 1, 1}),
                {15});
}

TEST(NetworkTest, AResidualBlockTakesTheWeightsOfItsBodyFirst) {
  // The order shows only if the branches treat their weights differently.
  const Tensor twice = values({2}, {1, 1, 1, 1}), ten_times = values({-10}, {1, 1, 1, 1});
  Layer shortcut = conv(1, 1, 1, 0, false);
  shortcut.name = "shortcut";
  expect_logits({residual({conv(1, 1, 1, 0, false), {Kind::kRelu}}, {shortcut})},
                {twice, ten_times}, values({5}, {1, 1, 1, 1}), {-40});
}

// A map of one pixel and a flat output are the same shape to the layers that follow.
TEST(NetworkTest, LayersAfterALinearLayerSeeAMapOfOnePixel) {
  const Tensor image = values({1, 2}, {1, 2, 1, 1}), swap = values({0, 1, 1, 0}, {2, 2});
  expect_logits({linear(2, false), normalize({1, 1}, {1, 1})}, {swap}, image, {1, 0});
  expect_logits({linear(2, false), conv(1, 1, 1, 0, false)}, {swap, values({1, 10}, {1, 2, 1, 1})},
                image, {12});
  expect_logits({linear(2, false), {Kind::kAvgPool}}, {swap}, image, {2, 1});
  expect_logits({residual({linear(2, false)}, {})}, {swap}, image, {3, 3});
}

// Without gradients maps are overwritten, but neither the images nor what a shortcut still reads.
TEST(NetworkTest, OverwritesNothingThatIsStillNeeded) {
  const Layer relu{Kind::kRelu}, dropout{Kind::kDropout};
  const std::vector<std::vector<Layer>> lists = {
      {relu},
      {dropout, relu},
      {residual({}, {})},
      {residual({dropout}, {relu})},
      {normalize({0}, {1}), residual({relu}, {})},
      {normalize({0}, {1}), residual({}, {relu}), relu},
      {residual({relu, residual({relu}, {})}, {normalize({1}, {1}), relu})}};
  for (const std::vector<Layer>& layers : lists) {
    const Tensor images = one_to_nine() - 5, before = images.clone();
    const Network network = network_for(images, layers);
    const Tensor expected = forward(network, {}, images);
    const c10::NoGradGuard no_grad;
    EXPECT_TRUE(at::equal(forward(network, {}, images), expected));
    EXPECT_TRUE(at::equal(images, before));
  }
}

TEST(NetworkTest, ForwardWantsExactlyTheNetworksTensors) {
  const Network network = network_for(one_to_nine(), {linear(1, true)});
  const Tensor weight = at::zeros({1, 9}), bias = at::zeros({1});
  EXPECT_THROW(forward(network, {weight}, one_to_nine()), c10::Error);
  EXPECT_THROW(forward(network, {weight, bias, bias}, one_to_nine()), c10::Error);
}

TEST(NetworkTest, NamesParametersInTheOrderOfTheForwardPass) {
  const Network network{"test",
                        {3, 8, 8},
                        {conv(4, 3, 1, 1, false),
                         {Kind::kBatchNorm, "bn"},
                         {Kind::kMaxPool, "", 0, 2, 2},
                         linear(5, true)}};
  std::vector<std::string> described;
  for (const Parameter& p : parameters(network)) {
    described.push_back(fmt::format("{} [{}] fan_in {}{}", p.name, fmt::join(p.shape, ", "),
                                    p.fan_in, p.trained ? "" : ", not trained"));
  }
  EXPECT_EQ(described, (std::vector<std::string>{
                           "conv.weight [4, 3, 3, 3] fan_in 27", "bn.weight [4] fan_in 0",
                           "bn.bias [4] fan_in 0", "bn.running_mean [4] fan_in 0, not trained",
                           "bn.running_var [4] fan_in 0, not trained",
                           "linear.weight [5, 64] fan_in 64", "linear.bias [5] fan_in 64"}));
  EXPECT_EQ(count_weights(network), 4 * 27 + 4 + 4 + 5 * 64 + 5);
}

// U(-b, b) has mean 0 and variance b^2 / 3; over N draws their estimates have standard deviations
// b / sqrt(3 N) and b^2 sqrt(4 / (45 N)).
TEST(NetworkTest, InitialWeightsAreUniformWithinTheRootOfTheFanIn) {
  const Network network{"test", {16, 8, 8}, {conv(256, 5, 1, 0, true)}};
  const Weights weights = initial_weights(network, Key{1});
  const double b = 1 / std::sqrt(16.0 * 5 * 5), n = 256.0 * 16 * 5 * 5;
  for (const Tensor& w : weights) EXPECT_LE(w.abs().max().item<double>(), b);
  const Tensor w = weights[0].to(at::kDouble);
  EXPECT_NEAR(w.mean().item<double>(), 0, 5 * b / std::sqrt(3 * n));
  EXPECT_NEAR(w.pow(2).mean().item<double>(), b * b / 3, 5 * b * b * std::sqrt(4 / (45 * n)));
  EXPECT_GT(weights[1].abs().max().item<double>(), 0.9 * b);  // missed with probability 0.9^256
}

TEST(NetworkTest, BatchNormStartsAsTheIdentity) {
  const Weights weights = initial_weights({"test", {2, 1, 1}, {{Kind::kBatchNorm, "bn"}}}, Key{1});
  ASSERT_EQ(weights.size(), 4u);
  const float expected[] = {1, 0, 0, 1};  // weight, bias, running mean, running variance
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(at::equal(weights[i], at::full({2}, expected[i])));
}

TEST(NetworkTest, InitialWeightsAreAFunctionOfTheKey) {
  const Network network{"test", {1, 4, 4}, {linear(4, true)}};
  const Weights once = initial_weights(network, Key{1}), again = initial_weights(network, Key{1}),
                other = initial_weights(network, Key{2});
  for (size_t i = 0; i < once.size(); ++i) {
    EXPECT_TRUE(at::equal(once[i], again[i]));
    EXPECT_FALSE(at::equal(once[i], other[i]));
  }
}

TEST(NetworkTest, LayersOfOneShapeStartDifferently) {
  Layer second = linear(16, true);
  second.name = "second";
  const Weights weights = initial_weights({"test", {1, 4, 4}, {linear(16, true), second}}, Key{1});
  EXPECT_FALSE(at::equal(weights[0], weights[2]));
  EXPECT_FALSE(at::equal(weights[1], weights[3]));
}

std::string refusal_of(const Shape& input, std::vector<Layer> layers) {
  return refusal([&] { parameters({"test", input, std::move(layers)}); });
}

TEST(NetworkTest, RefusesLayersThatDoNotFit) {
  EXPECT_EQ(refusal_of({1, 3, 9}, {conv(1, 5, 1, 0, true)}),
            "network: layer \"conv\": a window of 5 does not fit a map of 3 with padding 0");
  EXPECT_EQ(refusal_of({1, 9, 1}, {{Kind::kMaxPool, "", 0, 2, 2}}),
            "network: layer \"max-pool\": a window of 2 does not fit a map of 1 with padding 0");
  EXPECT_EQ(refusal_of({3, 4, 4}, {normalize({0.5}, {0.25})}),
            "network: normalisation for 1 channels, the images have 3");
  EXPECT_EQ(refusal_of({3, 4, 4}, {residual({conv(8, 1, 1, 0, true)}, {})}),
            "network: a residual block's branches give [8, 4, 4] and [3, 4, 4]");
  EXPECT_EQ(refusal_of({1, 1024, 1024}, {conv(4096, 1, 1, 0, true)}),
            "network: a layer's output of [4096, 1024, 1024] is too large");
}

TEST(NetworkTest, WantsAsManyDeviationsAsMeans) {
  EXPECT_EQ(refusal_of({3, 4, 4}, {normalize({0.5, 0.5, 0.5}, {0.25})}),
            "network: normalisation with 3 means and 1 standard deviations");
}

TEST(NetworkTest, RefusesTwoLayersOfOneName) {
  EXPECT_EQ(refusal_of({1, 4, 4}, {conv(1, 1, 1, 0, true), conv(1, 1, 1, 0, true)}),
            "network: two tensors are called \"conv.weight\"");
}

}  // namespace
}  // namespace fedsmooth
