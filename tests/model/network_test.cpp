#include "fedsmooth/model/network.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/arrays.h"
#include "tests/layers.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

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
  for (const Array& w : weights) EXPECT_LE(largest(w), b);
  double sum = 0, squares = 0;
  for (const double w : values_of(weights[0])) {
    sum += w;
    squares += w * w;
  }
  EXPECT_NEAR(sum / n, 0, 5 * b / std::sqrt(3 * n));
  EXPECT_NEAR(squares / n, b * b / 3, 5 * b * b * std::sqrt(4 / (45 * n)));
  EXPECT_GT(largest(weights[1]), 0.9 * b);  // missed with probability 0.9^256
}

TEST(NetworkTest, BatchNormStartsAsTheIdentity) {
  const Weights weights = initial_weights({"test", {2, 1, 1}, {{Kind::kBatchNorm, "bn"}}}, Key{1});
  ASSERT_EQ(weights.size(), 4u);
  const float expected[] = {1, 0, 0, 1};  // weight, bias, running mean, running variance
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(same_bits(weights[i], Array::full({2}, expected[i])));
}

TEST(NetworkTest, InitialWeightsAreAFunctionOfTheKey) {
  const Network network{"test", {1, 4, 4}, {linear(4, true)}};
  const Weights once = initial_weights(network, Key{1}), again = initial_weights(network, Key{1}),
                other = initial_weights(network, Key{2});
  for (size_t i = 0; i < once.size(); ++i) {
    EXPECT_TRUE(same_bits(once[i], again[i]));
    EXPECT_FALSE(same_bits(once[i], other[i]));
  }
}

TEST(NetworkTest, LayersOfOneShapeStartDifferently) {
  Layer second = linear(16, true);
  second.name = "second";
  const Weights weights = initial_weights({"test", {1, 4, 4}, {linear(16, true), second}}, Key{1});
  EXPECT_FALSE(same_bits(weights[0], weights[2]));
  EXPECT_FALSE(same_bits(weights[1], weights[3]));
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

TEST(NetworkTest, RequiresAsManyDeviationsAsMeans) {
  EXPECT_EQ(refusal_of({3, 4, 4}, {normalize({0.5, 0.5, 0.5}, {0.25})}),
            "network: normalisation with 3 means and 1 standard deviations");
}

TEST(NetworkTest, RefusesTwoLayersOfOneName) {
  EXPECT_EQ(refusal_of({1, 4, 4}, {conv(1, 1, 1, 0, true), conv(1, 1, 1, 0, true)}),
            "network: two tensors are called \"conv.weight\"");
}

}  // namespace
}  // namespace fedsmooth
