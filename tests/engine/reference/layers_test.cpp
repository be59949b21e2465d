// Layers one by one, by numbers that can be checked by hand.
#include "fedsmooth/engine/reference/layers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fedsmooth/engine/reference/convolutions.h"
#include "fedsmooth/engine/reference/norms.h"

namespace fedsmooth::reference {
namespace {

using Kind = Layer::Kind;

Layer window(Kind kind, int64_t outputs, int64_t kernel, int64_t stride, int64_t padding = 0) {
  return {kind, "layer", outputs, kernel, stride, padding};
}

using Numbers = std::vector<double>;

Map<double> map(int64_t images, const Shape& shape, const Numbers& values) {
  Map<double> made(images, shape);
  EXPECT_EQ(made.values.size(), values.size());
  made.values = values;
  return made;
}

/// 1 to 9 as one image of one channel.
Map<double> one_to_nine() { return map(1, {1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}); }

// Values of PyTorch 2 in double.
TEST(LayersTest, ActivationsArePyTorchs) {
  const Map<double> x = map(1, {4, 1, 1}, {-3, -0.5, 0, 2}), ones = map(1, {4, 1, 1}, {1, 1, 1, 1});
  Layer leaky{Kind::kLeakyRelu};
  leaky.slope = 0.25;
  const auto expect = [&](const Layer& layer, const Numbers& y, const Numbers& slopes) {
    const Numbers found = activate(layer, x).values, back = activate_back(layer, x, ones).values;
    for (size_t i = 0; i < y.size(); ++i) {
      EXPECT_NEAR(found[i], y[i], 1e-14) << i;
      EXPECT_NEAR(back[i], slopes[i], 1e-14) << i;
    }
  };
  expect({Kind::kRelu}, {0, 0, 0, 2}, {0, 0, 0, 1});
  expect(leaky, {-0.75, -0.125, 0, 2}, {0.25, 0.25, 0.25, 1});
  expect({Kind::kSilu}, {-0.14227761953270035, -0.1887703343990727, 0.0, 1.7615941559557646},
         {-0.08810410601516962, 0.2600388126973482, 0.5, 1.0907842487848955});
  expect({Kind::kGelu}, {-0.00404969409489031, -0.15426876936299344, 0.0, 1.9544997361036416},
         {-0.01194564720418392, 0.13250487534383712, 0.5, 1.085231801078197});
}

TEST(LayersTest, NormalizationIsPerChannel) {
  Layer layer{Kind::kNormalize};
  layer.mean = {0.5, 1};
  layer.sd = {0.25, 2};
  const Map<double> x = map(2, {2, 1, 2}, {1, 0, 5, 1, 0.5, 2, 3, -1});
  EXPECT_EQ(normalize(layer, x).values, (Numbers{2, -2, 2, 0, 0, 6, 1, -1}));
  EXPECT_EQ(normalize_back(layer, x).values, (Numbers{4, 0, 2.5, 0.5, 2, 8, 1.5, -0.5}));
}

TEST(LayersTest, AConvolutionOfOnePixelIsAMatrix) {
  const Layer layer = window(Kind::kConv, 3, 1, 1);
  const Map<double> x = map(1, {2, 1, 1}, {5, 7}), dy = map(1, {3, 1, 1}, {1, -2, 3});
  const Numbers weight = {1, 2, 3, 4, 5, 6}, bias = {10, 20, 30};
  EXPECT_EQ(convolve(layer, x, weight, bias, {3, 1, 1}).values, (Numbers{29, 63, 97}));
  EXPECT_EQ(convolve(layer, x, weight, {}, {3, 1, 1}).values, (Numbers{19, 43, 67}));
  EXPECT_EQ(convolve_back(layer, dy, weight, {2, 1, 1}).values, (Numbers{10, 12}));
  EXPECT_EQ(weight_gradient(layer, x, dy), (Numbers{5, 7, -10, -14, 15, 21}));
  EXPECT_EQ(bias_gradient(dy), (Numbers{1, -2, 3}));
}

// Windows of two by two at a stride of two over a frame of zeros: the corners are 1, 3, 7 and the
// four pixels 5, 6, 8, 9.
TEST(LayersTest, AConvolutionGoesBackWhereItCameFrom) {
  const Layer layer = window(Kind::kConv, 1, 2, 2, 1);
  const Map<double> x = one_to_nine(), dy = map(1, {1, 2, 2}, {1, 10, 100, 1000});
  const Numbers weight = {1, 2, 3, 4};
  EXPECT_EQ(convolve(layer, x, weight, {}, {1, 2, 2}).values, (Numbers{4, 18, 36, 77}));
  EXPECT_EQ(convolve_back(layer, dy, weight, {1, 3, 3}).values,
            (Numbers{4, 30, 40, 200, 1000, 2000, 400, 3000, 4000}));
  EXPECT_EQ(weight_gradient(layer, x, dy), (Numbers{5000, 6400, 8020, 9731}));
}

TEST(LayersTest, WeightGradientsAddUpOverTheImages) {
  const Layer layer = window(Kind::kConv, 1, 1, 1);
  const Map<double> x = map(2, {1, 1, 2}, {1, 2, 3, 4}), dy = map(2, {1, 1, 2}, {1, 10, 100, 1000});
  EXPECT_EQ(weight_gradient(layer, x, dy), Numbers{4321});
  EXPECT_EQ(bias_gradient(dy), Numbers{1111});
}

TEST(LayersTest, ALinearLayerTakesTheWholeMap) {
  const Layer layer = window(Kind::kLinear, 2, 1, 1);
  const Map<double> x = map(1, {2, 1, 2}, {1, 2, 3, 4}), dy = map(1, {2, 1, 1}, {1, 10});
  const Numbers weight = {1, 10, 100, 1000, -1, 0, 0, 1}, bias = {5, 6};
  EXPECT_EQ(convolve(layer, x, weight, bias, {2, 1, 1}).values, (Numbers{4326, 9}));
  EXPECT_EQ(convolve_back(layer, dy, weight, {2, 1, 2}).values, (Numbers{-9, 10, 100, 1010}));
  EXPECT_EQ(weight_gradient(layer, x, dy), (Numbers{1, 2, 3, 4, 10, 20, 30, 40}));
}

TEST(LayersTest, ReluLetsThroughWhatIsPositive) {
  const Map<double> x = map(1, {4, 1, 1}, {-1, 0, 2, -0.5}), y = relu(x);
  EXPECT_EQ(y.values, (Numbers{0, 0, 2, 0}));
  EXPECT_EQ(relu_back(y, map(1, {4, 1, 1}, {10, 20, 30, 40})).values, (Numbers{0, 0, 30, 0}));
}

template <typename Number>
void expect_that_nan_stays() {
  const Number nan = std::numeric_limits<Number>::quiet_NaN();
  Map<Number> x(1, {1, 2, 4});
  x.values = {1, nan, 3, 4, 9, 6, 7, 8};
  EXPECT_TRUE(std::isnan(relu(x).values[1]));
  const Map<Number> pooled = max_pool(window(Kind::kMaxPool, 0, 2, 2), x, {1, 1, 2});
  EXPECT_TRUE(std::isnan(pooled.values[0]));
  EXPECT_EQ(pooled.values[1], 8);
  EXPECT_TRUE(std::isnan(average_pool(x).values[0]));
}

// A broken evaluation must not turn into a vote.
TEST(LayersTest, NotANumberStaysOne) {
  expect_that_nan_stays<float>();
  expect_that_nan_stays<double>();
}

TEST(LayersTest, MaxPoolTakesTheLargestOfEachWindow) {
  const Map<double> x = map(1, {1, 3, 3}, {-5, -2, -9, -3, -7, -1, -8, -6, -4});
  const Layer layer = window(Kind::kMaxPool, 0, 2, 1);
  const Map<double> y = max_pool(layer, x, {1, 2, 2});
  EXPECT_EQ(y.values, (Numbers{-2, -1, -3, -1}));
  const Map<double> dy = map(1, {1, 2, 2}, {1, 10, 100, 1000});
  EXPECT_EQ(max_pool_back(layer, x, y, dy).values, (Numbers{0, 1, 0, 100, 0, 1010, 0, 0, 0}));
}

TEST(LayersTest, MaxPoolDropsWhatDoesNotFillAWindow) {
  const Layer layer = window(Kind::kMaxPool, 0, 2, 2);
  const Map<double> x = one_to_nine(), y = max_pool(layer, x, {1, 1, 1});
  EXPECT_EQ(y.values, Numbers{5});
  EXPECT_EQ(max_pool_back(layer, x, y, map(1, {1, 1, 1}, {3})).values,
            (Numbers{0, 0, 0, 0, 3, 0, 0, 0, 0}));
}

TEST(LayersTest, OfEqualValuesTheFirstGetsTheGradient) {
  const Layer layer = window(Kind::kMaxPool, 0, 2, 2);
  const Map<double> x = map(1, {2, 2, 2}, {0, 4, 4, 1, 7, 7, 7, 7}),
                    y = max_pool(layer, x, {2, 1, 1});
  EXPECT_EQ(max_pool_back(layer, x, y, map(1, {2, 1, 1}, {1, 2})).values,
            (Numbers{0, 1, 0, 0, 2, 0, 0, 0}));
}

TEST(LayersTest, AveragePoolTakesTheMeanOfTheMap) {
  const Map<double> x = map(1, {2, 1, 4}, {1, 2, 3, 6, -1, -2, -3, -4});
  EXPECT_EQ(average_pool(x).values, (Numbers{3, -2.5}));
  EXPECT_EQ(average_pool(x).shape, (Shape{2, 1, 1}));
  EXPECT_EQ(average_pool_back(map(1, {2, 1, 1}, {4, 8}), {2, 1, 4}).values,
            (Numbers{1, 1, 1, 1, 2, 2, 2, 2}));
}

// Channel 0 has 1, 3, 5, 7 over two images: mean 4, variance 20 / 4, unbiased 20 / 3. Channel 1 is
// constant. Running statistics move a tenth of the way.
TEST(LayersTest, BatchStatisticsAreOverImagesAndPixels) {
  const Map<double> x = map(2, {2, 1, 2}, {1, 3, 2, 2, 5, 7, 2, 2});
  Numbers mean = {10, 0}, variance = {1, 2};
  const Statistics found = batch_statistics(x, mean, variance);
  EXPECT_EQ(found.mean, (Numbers{4, 2}));
  EXPECT_DOUBLE_EQ(found.scale[0], 1 / std::sqrt(5 + 1e-5));
  EXPECT_DOUBLE_EQ(found.scale[1], 1 / std::sqrt(1e-5));
  EXPECT_DOUBLE_EQ(mean[0], 9.4);
  EXPECT_DOUBLE_EQ(mean[1], 0.2);
  EXPECT_DOUBLE_EQ(variance[0], 0.9 + 2.0 / 3);
  EXPECT_DOUBLE_EQ(variance[1], 1.8);
}

TEST(LayersTest, RunningStatisticsAreTakenAsTheyAre) {
  const Statistics found = running_statistics(Numbers{1, -2}, Numbers{4, 9});
  EXPECT_EQ(found.mean, (Numbers{1, -2}));
  EXPECT_DOUBLE_EQ(found.scale[0], 1 / std::sqrt(4 + 1e-5));
  EXPECT_DOUBLE_EQ(found.scale[1], 1 / std::sqrt(9 + 1e-5));
}

TEST(LayersTest, BatchNormScalesAndShiftsEachChannel) {
  const Map<double> x = map(2, {2, 1, 1}, {5, 1, 1, 3});
  const Statistics statistics = {{1, 2}, {0.5, 0.25}};
  const Numbers weight = {3, 8}, bias = {1, -1};
  EXPECT_EQ(batch_norm(x, statistics, weight, bias).values, (Numbers{7, -3, 1, 1}));
}

// n is 2, -1 in channel 0 and 0, 0.25 in channel 1; dy is 1, 10 and 2, 4.
TEST(LayersTest, BatchNormGoesBackWithAndWithoutItsStatistics) {
  const Map<double> x = map(2, {2, 1, 1}, {5, 2, -1, 3}), dy = map(2, {2, 1, 1}, {1, 2, 10, 4});
  const Statistics statistics = {{1, 2}, {0.5, 0.25}};
  const Numbers weight = {4, 8};
  const auto answer = batch_norm_back(x, dy, statistics, weight, /*of_batch=*/false);
  EXPECT_EQ(answer.weight, (Numbers{-8, 1}));
  EXPECT_EQ(answer.bias, (Numbers{11, 6}));
  EXPECT_EQ(answer.x.values, (Numbers{2, 4, 20, 8}));
  // Less mean(dy) = 5.5, 3 and n mean(dy n) = n (-4), n 0.5.
  const auto batch = batch_norm_back(x, dy, statistics, weight, /*of_batch=*/true);
  EXPECT_EQ(batch.weight, answer.weight);
  EXPECT_EQ(batch.bias, answer.bias);
  EXPECT_EQ(batch.x.values,
            (Numbers{2 * (1 - 5.5 + 8), 2 * (2 - 3), 2 * (10 - 5.5 - 4), 2 * (4 - 3 - 0.125)}));
}

}  // namespace
}  // namespace fedsmooth::reference
