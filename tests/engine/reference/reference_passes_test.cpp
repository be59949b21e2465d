// Networks forwards, by numbers that can be checked by hand, and what Passes promise.
#include "fedsmooth/engine/reference/reference_passes.h"

#include <gtest/gtest.h>

#include "fedsmooth/base/check.h"
#include "tests/arrays.h"
#include "tests/layers.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

Array values(const std::vector<float>& list, Sizes sizes) {
  return Array::of(std::move(sizes), list);
}

/// 1 to 9 as one image of one channel.
Array one_to_nine() { return values({1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 1, 3, 3}); }

Network network_for(const Array& images, std::vector<Layer> layers) {
  return {"test", {images.size(1), images.size(2), images.size(3)}, std::move(layers)};
}

/// The logits of the layers on `images`, one row per image.
void expect_logits(std::vector<Layer> layers, const Weights& weights, const Array& images,
                   const std::vector<float>& expected) {
  const Network network = network_for(images, std::move(layers));
  const Array logits = reference_logits(network, weights, images);
  const Shape out = output_shape(network);
  EXPECT_EQ(logits.sizes(), (Sizes{images.size(0), out[0] * out[1] * out[2]}));
  ASSERT_EQ(logits.count(), std::ssize(expected));
  // The numbers are chosen so that float32 holds all of them; only batch norm divides by a root.
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(logits.floats()[i], expected[i], 1e-6 * std::abs(expected[i])) << i;
  }
}

TEST(ReferencePassesTest, NormalizesEachChannel) {
  expect_logits({normalize({0.5, 0}, {0.25, 2})}, {}, values({1, 4}, {1, 2, 1, 1}), {2, 2});
}

TEST(ReferencePassesTest, ConvolvesWithoutFlippingTheKernel) {
  const Array kernel = values({1, 2, 3, 4}, {1, 1, 2, 2}), bias = values({10}, {1});
  expect_logits({conv(1, 2, 1, 0, true)}, {kernel, bias}, one_to_nine(), {47, 57, 77, 87});
}

TEST(ReferencePassesTest, ConvolvesWithStrideAndZeroPadding) {
  const Array kernel = values({1, 2, 3, 4}, {1, 1, 2, 2});
  expect_logits({conv(1, 2, 2, 1, false)}, {kernel}, one_to_nine(), {4, 18, 36, 77});
}

TEST(ReferencePassesTest, AddsUpChannelsInAConvolution) {
  const Array kernel = values({1, 10, 100, 1000}, {2, 2, 1, 1});
  expect_logits({conv(2, 1, 1, 0, false)}, {kernel}, values({2, 3}, {1, 2, 1, 1}), {32, 3200});
}

// (x - mean) / sqrt(variance + 1e-5) * weight + bias, with a root of 2.
TEST(ReferencePassesTest, BatchNormUsesItsRunningStatistics) {
  const Weights weights = {values({3}, {1}), values({1}, {1}), values({1}, {1}),
                           values({4 - 1e-5f}, {1})};
  expect_logits({{Kind::kBatchNorm, "bn"}}, weights, values({5}, {1, 1, 1, 1}), {7});
}

TEST(ReferencePassesTest, AnImagesLogitsDoNotDependOnItsNeighbours) {
  const Weights weights = {values({1}, {1}), values({0}, {1}), values({0}, {1}), values({1}, {1})};
  const Array image = one_to_nine();
  Array both({2, 1, 3, 3});
  for (int64_t i = 0; i < 9; ++i) {
    both[0].floats()[i] = image.floats()[i];
    both[1].floats()[i] = 100 * image.floats()[i];
  }
  const Network network = network_for(image, {{Kind::kBatchNorm, "bn"}});
  const Array alone = reference_logits(network, weights, image);
  EXPECT_TRUE(same_bits(reference_logits(network, weights, both)[0], alone[0]));
}

TEST(ReferencePassesTest, ReluCutsOffBelowZero) {
  expect_logits({{Kind::kRelu}}, {}, values({-1, 0, 2}, {1, 3, 1, 1}), {0, 0, 2});
}

TEST(ReferencePassesTest, MaxPoolDropsWhatDoesNotFillAWindow) {
  expect_logits({{Kind::kMaxPool, "", 0, 2, 2}}, {}, one_to_nine(), {5});
}

TEST(ReferencePassesTest, MaxPoolWindowsMayOverlap) {
  expect_logits({{Kind::kMaxPool, "", 0, 2, 1}}, {}, one_to_nine(), {5, 6, 8, 9});
}

TEST(ReferencePassesTest, AvgPoolTakesTheWholeMap) {
  expect_logits({{Kind::kAvgPool}}, {}, one_to_nine(), {5});
}

TEST(ReferencePassesTest, DropoutIsTheIdentity) {
  Layer dropout{Kind::kDropout};
  dropout.drop_rate = 0.9;
  expect_logits({dropout}, {}, values({1, 2}, {1, 2, 1, 1}), {1, 2});
}

TEST(ReferencePassesTest, LinearFlattensChannelsThenRowsThenColumns) {
  const Array image = values({1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 2, 2});
  const Array weight = values({1e0, 1e1, 1e2, 1e3, 0, 0, 0, 1e4}, {1, 8});
  expect_logits({linear(1, false)}, {weight}, image, {84321});
  expect_logits({linear(1, true)}, {weight, values({-1}, {1})}, image, {84320});
}

TEST(ReferencePassesTest, AResidualBlockWithoutShortcutAddsItsInput) {
  const Array twice = values({2}, {1, 1, 1, 1});
  expect_logits({residual({conv(1, 1, 1, 0, false)}, {})}, {twice}, values({5}, {1, 1, 1, 1}),
                {15});
}

TEST(ReferencePassesTest, AResidualBlockTakesTheWeightsOfItsBodyFirst) {
  // The order shows only if the branches treat their weights differently.
  const Array twice = values({2}, {1, 1, 1, 1}), ten_times = values({-10}, {1, 1, 1, 1});
  Layer shortcut = conv(1, 1, 1, 0, false);
  shortcut.name = "shortcut";
  expect_logits({residual({conv(1, 1, 1, 0, false), {Kind::kRelu}}, {shortcut})},
                {twice, ten_times}, values({5}, {1, 1, 1, 1}), {-40});
}

// A map of one pixel and a flat output are the same shape to the layers that follow.
TEST(ReferencePassesTest, LayersAfterALinearLayerSeeAMapOfOnePixel) {
  const Array image = values({1, 2}, {1, 2, 1, 1}), swap = values({0, 1, 1, 0}, {2, 2});
  expect_logits({linear(2, false), normalize({1, 1}, {1, 1})}, {swap}, image, {1, 0});
  expect_logits({linear(2, false), conv(1, 1, 1, 0, false)}, {swap, values({1, 10}, {1, 2, 1, 1})},
                image, {12});
  expect_logits({linear(2, false), {Kind::kAvgPool}}, {swap}, image, {2, 1});
  expect_logits({residual({linear(2, false)}, {})}, {swap}, image, {3, 3});
}

// Branches read the same map, and one must not see what the other made of it.
TEST(ReferencePassesTest, OverwritesNothingThatIsStillNeeded) {
  const Layer relu{Kind::kRelu}, dropout{Kind::kDropout};
  const std::vector<std::pair<std::vector<Layer>, std::function<float(float)>>> cases = {
      {{relu}, [](float x) { return std::max(x, 0.0f); }},
      {{dropout, relu}, [](float x) { return std::max(x, 0.0f); }},
      {{residual({}, {})}, [](float x) { return 2 * x; }},
      {{residual({dropout}, {relu})}, [](float x) { return x + std::max(x, 0.0f); }},
      {{normalize({0}, {1}), residual({relu}, {})}, [](float x) { return std::max(x, 0.0f) + x; }},
      {{normalize({0}, {1}), residual({}, {relu}), relu},
       [](float x) { return std::max(x + std::max(x, 0.0f), 0.0f); }},
      {{residual({relu, residual({relu}, {})}, {normalize({1}, {1}), relu})},
       [](float x) { return 2 * std::max(x, 0.0f) + std::max(x - 1, 0.0f); }}};
  for (const auto& [layers, expected] : cases) {
    const Array images = each(one_to_nine(), [](float x) { return x - 5; }),
                before = images.clone();
    const Array logits = reference_logits(network_for(images, layers), {}, images);
    EXPECT_EQ(values_of(logits), values_of(each(before, expected)));
    EXPECT_TRUE(same_bits(images, before));
  }
}

TEST(ReferencePassesTest, WantsExactlyTheNetworksTensors) {
  const Network network = network_for(one_to_nine(), {linear(1, true)});
  const Array weight({1, 9}), bias({1});
  EXPECT_THROW(reference_logits(network, {weight}, one_to_nine()), Bug);
  EXPECT_THROW(reference_logits(network, {weight, bias, bias}, one_to_nine()), Bug);
  EXPECT_THROW(reference_logits(network, {weight, Array({2})}, one_to_nine()), Bug);
  EXPECT_NO_THROW(reference_logits(network, {weight, bias}, one_to_nine()));
}

TEST(ReferencePassesTest, WantsAGradientOfTheLogits) {
  const auto passes = reference_passes(network_for(one_to_nine(), {linear(2, true)}));
  passes->load({Array({2, 9}), Array({2})});
  passes->forward(one_to_nine(), std::nullopt);
  EXPECT_THROW(passes->backward_to_images(Array({1, 3})), Bug);
  EXPECT_THROW(passes->backward_to_weights(Array({2, 2})), Bug);
}

/// conv (no bias), batch norm, linear on one to nine.
Network three_tensors() {
  return network_for(one_to_nine(),
                     {conv(1, 3, 1, 0, false), {Kind::kBatchNorm, "bn"}, linear(1, true)});
}

// Running statistics are left out.
TEST(ReferencePassesTest, GradientsAreThoseOfTheTrainedTensorsInOrder) {
  const auto passes = reference_passes(three_tensors());
  // y = 4 (3 (45 - 5) / 2 + 7) + 9.
  passes->load({Array::full({1, 1, 3, 3}, 1), values({3}, {1}), values({7}, {1}), values({5}, {1}),
                values({4 - 1e-5f}, {1}), values({4}, {1, 1}), values({9}, {1})});
  EXPECT_NEAR(passes->forward(one_to_nine(), std::nullopt).floats()[0], 277, 1e-4);
  const Array one = Array::full({1, 1}, 1);
  EXPECT_LT(difference(passes->backward_to_images(one), Array::full({1, 1, 3, 3}, 6)), 1e-5);
  const std::vector<WeightGradient> found = passes->backward_to_weights(one);
  const std::vector<std::vector<float>> expected = {
      {6, 12, 18, 24, 30, 36, 42, 48, 54}, {80}, {4}, {67}, {1}};
  ASSERT_EQ(found.size(), expected.size());
  for (size_t t = 0; t < found.size(); ++t) {
    ASSERT_EQ(found[t].count, std::ssize(expected[t]));
    for (int64_t i = 0; i < found[t].count; ++i) {
      EXPECT_NEAR(found[t].gradient[i], expected[t][i], 1e-6 * expected[t][i]) << t << " " << i;
    }
  }
}

TEST(ReferencePassesTest, WeightsAreTheirOwn) {
  const Network network = three_tensors();
  const Weights weights = initial_weights(network, Key{1});
  Weights changed;
  for (const Array& w : weights) changed.push_back(w.clone());
  const auto passes = reference_passes(network);
  passes->load(changed);
  const Array before = passes->forward(one_to_nine(), std::nullopt);
  for (Array& w : changed) w.floats()[0] += 1;
  EXPECT_TRUE(same_bits(passes->forward(one_to_nine(), std::nullopt), before));
  const Weights given = passes->weights();
  ASSERT_EQ(given.size(), weights.size());
  for (size_t i = 0; i < weights.size(); ++i) EXPECT_TRUE(same_bits(given[i], weights[i])) << i;
  // What a caller does to a gradient's weights counts from the next pass on.
  const std::vector<WeightGradient> found = passes->backward_to_weights(Array::full({1, 1}, 1));
  *found.back().weights += 2;
  EXPECT_NEAR(passes->forward(one_to_nine(), std::nullopt).floats()[0], before.floats()[0] + 2,
              1e-5);
  EXPECT_EQ(passes->weights().back().floats()[0], weights.back().floats()[0] + 2);
  EXPECT_TRUE(same_bits(given.back(), weights.back()));
}

}  // namespace
}  // namespace fedsmooth
