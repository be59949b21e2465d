// Every kind of layer backwards, by central differences in double.
#include <gtest/gtest.h>

#include "tests/engine/networks.h"
#include "tests/engine/reference/double_networks.h"

namespace fedsmooth::reference {
namespace {

using Kind = Layer::Kind;

const Stream kStream = {make_key(2, Purpose::kDropout), 1, 4};

struct Case {
  std::string name;
  Shape input;
  std::vector<Layer> layers;
  bool training = false;
};

Layer conv(const std::string& name, int64_t outputs, int64_t kernel, int64_t stride,
           int64_t padding) {
  return layer(Kind::kConv, name, outputs, kernel, stride, padding);
}

Layer standardized(Layer layer) {
  layer.standardize = true;
  return layer;
}

Layer max_pool(int64_t kernel, int64_t stride) {
  return layer(Kind::kMaxPool, "", 0, kernel, stride);
}

Layer dropout(double rate) {
  Layer made{Kind::kDropout};
  made.drop_rate = rate;
  return made;
}

Layer leaky_relu(double slope) {
  Layer made{Kind::kLeakyRelu};
  made.slope = slope;
  return made;
}

Layer group_norm(int64_t groups) {
  Layer made = layer(Kind::kGroupNorm, "norm");
  made.groups = groups;
  return made;
}

const Layer kRelu = layer(Kind::kRelu, ""), kSilu{Kind::kSilu}, kGelu{Kind::kGelu},
            kMean = layer(Kind::kAvgPool, ""), kNorm = layer(Kind::kBatchNorm, "norm"),
            kNorm2 = layer(Kind::kBatchNorm, "norm2");

// Maps are not square, so that rows and columns cannot be mistaken for each other. Layers with an
// even number of outputs have a bias.
const std::vector<Case> kCases = {
    {"Normalization", {2, 3, 4}, {two_channel_normalization()}},
    {"Convolution", {2, 5, 6}, {conv("c", 4, 3, 1, 1)}},
    {"ConvolutionWithoutBias", {2, 5, 6}, {conv("c", 3, 3, 1, 1)}},
    {"ConvolutionWithStride", {2, 7, 6}, {conv("c", 4, 3, 2, 1)}},
    {"ConvolutionThatSkipsPixels", {2, 7, 6}, {conv("c", 3, 2, 3, 0)}},
    {"ConvolutionOfEvenSizeWithWidePadding", {1, 3, 4}, {conv("c", 2, 4, 3, 3)}},
    {"ConvolutionOfOnePixel", {3, 2, 3}, {conv("c", 18, 1, 1, 0)}},
    {"StandardizedConvolution", {2, 5, 6}, {standardized(conv("c", 4, 3, 1, 1))}},
    {"StandardizedConvolutionInTraining",
     {2, 7, 6},
     {standardized(conv("c", 3, 3, 2, 1)), kNorm, kRelu},
     true},
    {"Linear", {2, 3, 4}, {layer(Kind::kLinear, "l", 4)}},
    {"LinearWithoutBias", {2, 3, 4}, {layer(Kind::kLinear, "l", 3)}},
    {"Relu", {2, 3, 4}, {kRelu}},
    {"LeakyRelu", {2, 3, 4}, {leaky_relu(0.3)}},
    {"Silu", {2, 3, 4}, {kSilu}},
    {"Gelu", {2, 3, 4}, {kGelu}},
    {"ActivationsInBlocks",
     {2, 4, 5},
     {residual({conv("c", 3, 3, 1, 1), kNorm, kSilu, conv("d", 2, 3, 1, 1)}, {kGelu}),
      leaky_relu(0.1), max_pool(2, 2)},
     true},
    {"MaxPool", {2, 4, 6}, {max_pool(2, 2)}},
    {"MaxPoolThatLeavesAnEdge", {2, 5, 6}, {max_pool(3, 3)}},
    {"MaxPoolWithOverlap", {2, 5, 7}, {max_pool(3, 2)}},
    {"AveragePool", {3, 4, 5}, {kMean}},
    {"BatchNormAsItAnswers", {3, 3, 4}, {kNorm}},
    {"BatchNormInTraining", {3, 3, 4}, {kNorm}, true},
    {"GroupNormOfOneGroup", {3, 3, 4}, {group_norm(1)}},
    {"GroupNormOfTwoGroups", {4, 3, 2}, {group_norm(2)}, true},
    {"GroupNormOfSingleChannels", {3, 3, 4}, {conv("c", 3, 3, 1, 1), group_norm(3), kRelu}},
    {"DropoutAsItAnswers", {2, 3, 4}, {dropout(0.4)}},
    {"DropoutTwiceInTraining", {2, 3, 4}, {dropout(0.4), dropout(0.3)}, true},
    {"ResidualOfIdentities", {2, 3, 4}, {residual({}, {})}},
    {"ResidualWithIdentityShortcut",
     {2, 4, 5},
     {residual({conv("c", 3, 3, 1, 1), kRelu, conv("d", 2, 3, 1, 1)}, {}), kRelu}},
    {"ResidualWithProjection",
     {2, 6, 5},
     {residual({conv("c", 3, 3, 2, 1), kNorm, kRelu, conv("d", 4, 3, 1, 1)},
               {conv("s", 4, 1, 2, 0), kNorm2}),
      kRelu}},
    {"ResidualWithProjectionInTraining",
     {2, 6, 5},
     {residual({conv("c", 3, 3, 2, 1), kNorm, kRelu, dropout(0.3), conv("d", 3, 3, 1, 1)},
               {conv("s", 3, 1, 2, 0), kNorm2}),
      kRelu, dropout(0.2)},
     true},
    {"ResidualInTheShortcut",
     {2, 4, 5},
     {residual({conv("c", 2, 1, 1, 0)}, {residual({conv("d", 2, 3, 1, 1)}, {kRelu})})}},
};

class LayerGradientsTest : public testing::TestWithParam<Case> {
 protected:
  LayerGradientsTest()
      : known_(parameters(network_)),
        weights_(lively_weights(network_, 1)),
        images_(distinct_values({3, network_.input[0], network_.input[1], network_.input[2]}, 5)) {
    if (GetParam().training) training_ = kStream;
  }

  const Network network_{"test", GetParam().input, GetParam().layers};
  const std::vector<Parameter> known_;
  const Weights weights_;
  const Array images_;
  std::optional<Stream> training_;
};

INSTANTIATE_TEST_SUITE_P(All, LayerGradientsTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

double largest_of(const std::vector<double>& values) {
  double most = 0;
  for (const double v : values) most = std::max(most, std::abs(v));
  return most;
}

// The difference is off by the third derivative times step^2 / 6 and by the rounding of a sum of
// some hundred values over the step: 1e-10 and 1e-9.
TEST_P(LayerGradientsTest, AreThoseOfFiniteDifferences) {
  constexpr double kStep = 1e-5, kTolerance = 1e-8;
  auto network = network_of<double>(network_, weights_);
  const std::vector<Values<double>> start = network.weights;
  Map<double> images = map_of<double>(images_);
  const Map<double> y = network.forward(images, training_);
  const WeightedSum loss(std::ssize(y.values));
  const auto found = network.backward(loss.gradient(y));
  std::vector<Values<double>> weights = start;
  const auto value = [&] {
    network.weights = weights;  // running statistics have moved
    return loss.value(network.forward(images, training_));
  };

  ASSERT_EQ(found.images.values.size(), images.values.size());
  const double scale = largest_of(found.images.values);
  EXPECT_GT(scale, 0.01);
  for (size_t i = 0; i < images.values.size(); ++i) {
    const double expected = slope(images.values[i], kStep, value);
    ASSERT_NEAR(found.images.values[i], expected, kTolerance * scale) << "image value " << i;
  }
  ASSERT_EQ(found.weights.size(), known_.size());
  for (size_t t = 0; t < known_.size(); ++t) {
    if (!known_[t].trained) {
      EXPECT_TRUE(found.weights[t].empty()) << known_[t].name;
      continue;
    }
    ASSERT_EQ(found.weights[t].size(), weights[t].size());
    const double size = largest_of(found.weights[t]);
    EXPECT_GT(size, 0.01) << known_[t].name;
    for (size_t i = 0; i < weights[t].size(); ++i) {
      const double expected = slope(weights[t][i], kStep, value);
      ASSERT_NEAR(found.weights[t][i], expected, kTolerance * size) << known_[t].name << " " << i;
    }
  }
}

template <typename Number>
struct Pass {
  Map<Number> y;
  typename ReferenceNetwork<Number>::Gradients gradients;
  std::vector<Values<Number>> weights;  // with their statistics moved
};

template <typename Number>
Pass<Number> pass_of(const Network& network, const Weights& weights, const Array& images,
                     const std::optional<Stream>& training) {
  auto made = network_of<Number>(network, weights);
  Pass<Number> pass;
  pass.y = made.forward(map_of<Number>(images), training);
  const WeightedSum loss(std::ssize(pass.y.values));
  pass.gradients = made.backward(loss.gradient(pass.y));
  pass.weights = made.weights;
  return pass;
}

void expect_close(const std::vector<float>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  const double scale = largest_of(expected);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-5 * scale) << i;
  }
}

// Some ten roundings of 2^-24 each, of sums whose terms partly cancel.
TEST_P(LayerGradientsTest, AreTheSameInFloat) {
  const auto found = pass_of<float>(network_, weights_, images_, training_);
  const auto expected = pass_of<double>(network_, weights_, images_, training_);
  expect_close(found.y.values, expected.y.values);
  expect_close(found.gradients.images.values, expected.gradients.images.values);
  for (size_t t = 0; t < known_.size(); ++t) {
    SCOPED_TRACE(known_[t].name);
    expect_close(found.gradients.weights[t], expected.gradients.weights[t]);
    expect_close(found.weights[t], expected.weights[t]);
  }
}

}  // namespace
}  // namespace fedsmooth::reference
