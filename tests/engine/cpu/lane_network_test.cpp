#include "fedsmooth/engine/cpu/lane_network.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fedsmooth/base/check.h"
#include "tests/engine/networks.h"
#include "tests/engine/passes.h"

namespace fedsmooth {
namespace {

// Both round each sum of up to some thousand terms: a relative error of 1e-5 of the largest entry
// is a hundred units in the last place.
constexpr double kTolerance = 1e-5;

// Odd sizes, overlapping pools, padding wider than the map, strides that leave pixels out.
Network odd() {
  using Kind = Layer::Kind;
  Network network{
      "odd",
      {2, 13, 9},
      {two_channel_normalization(), layer(Kind::kConv, "", 7, 4, 3, 2), layer(Kind::kRelu, ""),
       layer(Kind::kMaxPool, "", 0, 2, 1), layer(Kind::kConv, "", 20, 5, 1, 4),
       layer(Kind::kMaxPool, "", 0, 3, 2), layer(Kind::kConv, "", 16, 3, 2, 1),
       layer(Kind::kRelu, ""), layer(Kind::kConv, "", 5, 3, 2, 1),
       layer(Kind::kMaxPool, "", 0, 1, 1), layer(Kind::kLinear, "", 18), layer(Kind::kRelu, ""),
       layer(Kind::kLinear, "", 3)}};
  for (size_t i = 0; i < network.layers.size(); ++i) network.layers[i].name = std::to_string(i);
  return network;
}

Weights start(const Network& network) {
  return initial_weights(network, make_key(1, Purpose::kWeights));
}

Weights scaled(const Weights& weights, float factor) {
  Weights out;
  for (const Array& w : weights) out.push_back(each(w, [=](float v) { return factor * v; }));
  return out;
}

class LaneNetworkCaseTest : public testing::TestWithParam<std::string> {};

TEST_P(LaneNetworkCaseTest, AgreesWithTheReference) {
  const Network network = GetParam() == "odd" ? odd() : named_network(GetParam());
  ASSERT_EQ(lanes_refusal(network), "");
  const Weights weights = start(network);
  const auto lanes = lane_passes(network), reference = reference_passes(network);
  for (const int64_t batch : {1, 16, 21}) {
    SCOPED_TRACE(batch);
    const auto [c, h, w] = network.input;
    const Array images = uniform({batch, c, h, w}, 2);
    const PassResult expected = run_passes(*reference, weights, images);
    expect_close(run_passes(*lanes, weights, images), expected, network, kTolerance);
    // No layer that it knows is another one in training.
    const Stream training{make_key(1, Purpose::kDropout)};
    expect_close(run_passes(*lanes, weights, images, training), expected, network, kTolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, LaneNetworkCaseTest, testing::Values("alexnet", "small", "odd"),
                         [](const auto& info) { return info.param; });

// Odd sizes and channels, tiles that hang over the edge, a wide padding, a sum without a norm, a
// norm without a product before it, all pools and both shortcuts.
Network odd_residual() {
  using Kind = Layer::Kind;
  const Layer relu = layer(Kind::kRelu, "");
  const auto conv = [](const std::string& name, int64_t outputs, int64_t kernel, int64_t stride,
                       int64_t padding, bool bias) {
    Layer made = layer(Kind::kConv, name, outputs, kernel, stride, padding);
    made.bias = bias;
    return made;
  };
  const auto norm = [](const std::string& name) { return layer(Kind::kBatchNorm, name); };
  Layer fewer{Kind::kSubsample, "", 48, 1, 2};
  return {"odd residual",
          {2, 11, 9},
          {two_channel_normalization(), conv("a", 16, 3, 1, 2, true), norm("an"), relu,
           residual({norm("bn"), relu, conv("b", 16, 3, 1, 1, false), norm("cn"), relu,
                     conv("c", 16, 3, 1, 1, false)},
                    {}),
           residual({conv("d", 32, 3, 2, 1, false), norm("dn"), relu, conv("e", 32, 3, 1, 1, false),
                     norm("en")},
                    {conv("s", 32, 1, 2, 0, true), norm("sn")}),
           relu, layer(Kind::kMaxPool, "", 0, 3, 1),
           residual({conv("f", 48, 3, 2, 1, false), norm("fn")}, {fewer}), relu,
           conv("g", 5, 3, 1, 1, false), norm("gn"), layer(Kind::kAvgPool, ""),
           layer(Kind::kLinear, "h", 3)}};
}

// Every activation, after norms, sums and products, and before a pool.
Network with_smooth_activations() {
  using Kind = Layer::Kind;
  const auto conv = [](const std::string& name) { return layer(Kind::kConv, name, 16, 3, 1, 1); };
  const auto norm = [](const std::string& name) { return layer(Kind::kBatchNorm, name); };
  const Layer leaky{Kind::kLeakyRelu}, silu{Kind::kSilu}, gelu{Kind::kGelu};
  return {"smooth",
          {2, 9, 8},
          {two_channel_normalization(), conv("a"), silu, conv("b"), norm("bn"), gelu,
           residual({conv("c"), norm("cn"), leaky, conv("d")}, {silu}), gelu,
           layer(Kind::kMaxPool, "", 0, 2, 2), leaky, conv("e"), leaky, layer(Kind::kAvgPool, ""),
           layer(Kind::kLinear, "f", 8), silu, layer(Kind::kLinear, "h", 3)}};
}

class LaneResidualTest : public testing::TestWithParam<std::string> {};

// Large networks are thinned: a ReLU whose input is within rounding of zero may switch, and the
// more there are the likelier one does. Weights at which no norm is the identity, in double and in
// lanes: 20 layers of sums of up to 576 products round by 2^-24 sqrt(576) each, tiles by ten times
// as much, and errors add like a random walk: 2^-24 * 24 * 10 * sqrt(20) = 6e-5 of the largest
// value. In training, gradients are differences of near equals: ten times that.
TEST_P(LaneResidualTest, AgreesWithTheReferenceInDouble) {
  const bool wide = GetParam() == "resnet18" || GetParam() == "vgg16-bn";
  const Network network = GetParam() == "odd"      ? odd_residual()
                          : GetParam() == "smooth" ? with_smooth_activations()
                          : wide                   ? thin_network(GetParam(), 8)
                                                   : named_network(GetParam());
  ASSERT_EQ(lanes_refusal(network), "");
  const Weights weights = reference::lively_weights(network, /*gain=*/std::sqrt(6.0f));
  const auto lanes = lane_passes(network);
  for (const int64_t batch : {1, 5, 16, 19}) {
    for (const bool trains : {false, true}) {
      if (GetParam() != "odd" && batch != 5) continue;
      if (trains && batch == 1) continue;  // one value a channel at the end has no variance
      SCOPED_TRACE(fmt::format("batch {}, training {}", batch, trains));
      const auto [c, h, w] = network.input;
      const Array images = uniform({batch, c, h, w}, 2);
      std::optional<Stream> training;
      if (trains) training = Stream{make_key(1, Purpose::kDropout)};
      const PassResult found = run_passes(*lanes, weights, images, training);
      auto exact = reference::network_of<double>(network, weights);
      const auto logits = exact.forward(reference::map_of<double>(images), training);
      const Array factors = logit_factors(found.logits.sizes());
      reference::Map<double> dy = logits;
      std::copy_n(factors.floats(), factors.count(), dy.values.begin());
      const auto gradients = exact.backward(dy);
      EXPECT_LT(relative_error(found.logits, logits.values), 6e-5);
      EXPECT_LT(relative_error(found.images, gradients.images.values), 6e-4);
      const std::vector<Parameter> all = parameters(network);
      for (size_t i = 0; i < all.size(); ++i) {
        // A batch's statistics take out any shift before them.
        if (trains && is_shift_before_a_norm(network, i)) continue;
        const auto& expected = all[i].trained ? gradients.weights[i] : exact.weights[i];
        EXPECT_LT(relative_error(found.weights[i], expected), 6e-4) << all[i].name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, LaneResidualTest,
                         testing::Values("resnet8", "resnet8-a", "resnet8-ws", "resnet18",
                                         "vgg16-bn", "wrn-10-1", "wrn-16-1", "odd", "smooth"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(LaneNetworkTest, AnImageOfAResidualNetworkDoesNotDependOnTheOthers) {
  const Network network = named_network("resnet8");
  const Array images = uniform({20, 3, 32, 32}, 2);
  const auto lanes = lane_passes(network);
  lanes->load(start(network));
  const Array all = lanes->forward(images, std::nullopt);
  EXPECT_TRUE(same_bits(lanes->forward(images.part(17, 3), std::nullopt), all.part(17, 3)));
}

// Some layers keep what they made of their weights.
TEST(LaneNetworkTest, NoticesChangedWeights) {
  const Network network = named_network("alexnet");
  const Array images = uniform({4, 3, 32, 32}, 2);
  const auto lanes = lane_passes(network);
  Weights weights = start(network);
  const auto expect_logits = [&] {
    expect_close(lanes->forward(images, std::nullopt), reference_logits(network, weights, images),
                 kTolerance, "logits");
  };
  for (int i = 0; i < 3; ++i) {
    lanes->load(weights);
    expect_logits();
    weights = scaled(weights, 0.9f);
  }
  lanes->load(weights);
  for (int i = 0; i < 3; ++i) {
    expect_logits();
    // As a step of training moves them.
    for (const WeightGradient& g : lanes->backward_to_weights(logit_factors({4, 10}))) {
      for (int64_t j = 0; j < g.count; ++j) g.weights[j] *= 0.9f;
    }
    weights = scaled(weights, 0.9f);
  }
  expect_logits();
}

TEST(LaneNetworkTest, StandardizesChangedWeightsAnew) {
  const Network network = named_network("resnet8-ws");
  const Array images = uniform({2, 3, 32, 32}, 2);
  const auto lanes = lane_passes(network);
  for (const uint64_t seed : {1, 2}) {
    const Weights weights = initial_weights(network, make_key(seed, Purpose::kWeights));
    lanes->load(weights);
    expect_close(lanes->forward(images, std::nullopt), reference_logits(network, weights, images),
                 kTolerance, "logits");
  }
}

TEST(LaneNetworkTest, GivesItsWeightsBack) {
  const Network network = odd();
  const Weights weights = start(network);
  const auto lanes = lane_passes(network);
  lanes->load(weights);
  const Weights found = lanes->weights();
  ASSERT_EQ(found.size(), weights.size());
  for (size_t i = 0; i < weights.size(); ++i) EXPECT_TRUE(same_bits(found[i], weights[i])) << i;
}

TEST(LaneNetworkTest, AnImageDoesNotDependOnTheOthers) {
  const Network network = named_network("small");
  const Array images = uniform({40, 3, 32, 32}, 2);
  const auto lanes = lane_passes(network);
  lanes->load(start(network));
  const Array all = lanes->forward(images, std::nullopt);
  EXPECT_TRUE(same_bits(lanes->forward(images.part(17, 3), std::nullopt), all.part(17, 3)));
}

TEST(LaneNetworkTest, GradientsOfAnotherPassAreRefused) {
  const Network network = named_network("small");
  const auto lanes = lane_passes(network);
  lanes->load(start(network));
  EXPECT_THROW(lanes->backward_to_images(logit_factors({2, 10})), Bug);
  const Array images = uniform({2, 3, 32, 32}, 2);
  lanes->forward(images, std::nullopt);
  lanes->forward(images.part(0, 1), std::nullopt);
  EXPECT_THROW(lanes->backward_to_images(logit_factors({2, 10})), Bug);
  EXPECT_THROW(lanes->backward_to_weights(logit_factors({1, 9})), Bug);
  EXPECT_NO_THROW(lanes->backward_to_images(logit_factors({1, 10})));
}

TEST(LaneNetworkTest, WantsExactlyTheNetworksTensors) {
  const Network network = named_network("small");
  Weights weights = start(network);
  weights.pop_back();
  EXPECT_THROW(lane_passes(network)->load(weights), Bug);
}

TEST(LaneNetworkTest, NamesTheStageThatItDoesNotKnow) {
  EXPECT_EQ(lanes_refusal(named_network("alexnet-fc")),
            "stage features.10 (conv, relu, max-pool, dropout) has dropout, which this engine does "
            "not compute");
  EXPECT_EQ(lanes_refusal(named_network("resnet20-gn")),
            "stage conv1 (conv, group-norm, relu) has group-norm, which this engine does not "
            "compute");
  EXPECT_ANY_THROW(lane_passes(named_network("alexnet-fc")));
}

}  // namespace
}  // namespace fedsmooth
