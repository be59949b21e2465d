#include "fedsmooth/engine/cpu/fast_network.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "fedsmooth/base/error.h"
#include "fedsmooth/model/architectures.h"
#include "fedsmooth/model/fold.h"
#include "tests/engine/networks.h"
#include "tests/engine/passes.h"

namespace fedsmooth {
namespace {

constexpr int64_t kBatch = 30;  // no multiple of the rows that are computed at a time

Network named(const std::string& name, const Shape& input = {3, 32, 32}) {
  ModelOptions options{name};
  set_default_normalization(options, "cifar10", input[0]);
  return build_network(options, input, 10);
}

Array noisy_images(const Shape& shape) {
  Array images({kBatch, shape[0], shape[1], shape[2]});
  fill_normal({make_key(1, Purpose::kProbe)}, 0, images.floats(), images.count());
  return each(images, [](float v) { return 0.5f * v + 0.5f; });
}

// Relative error of the last `rows` images' logits against the same network in double.
void expect_same(const Network& network, const Weights& weights, double tolerance,
                 int64_t rows = kBatch) {
  ASSERT_TRUE(FastNetwork::refusal(network).empty());
  const Array images = noisy_images(network.input);
  FastNetwork fast(network, weights, kBatch);
  const Array some = images.part(kBatch - rows, rows);
  EXPECT_LT(
      relative_error(fast(images).part(kBatch - rows, rows), exact_logits(network, weights, some)),
      tolerance);
}

// Each of about ten layers sums up to 4,608 products of fp32 numbers; with errors that add like a
// random walk that is 10 * sqrt(4608) * 2^-24 = 4e-5 at the very worst and far less in practice.
constexpr double kTolerance = 1e-5;

TEST(FastNetworkTest, GivesTheLogitsOfTheReference) {
  for (const std::string name : {"alexnet", "alexnet-fc", "small"}) {
    SCOPED_TRACE(name);
    const Network network = named(name);
    expect_same(network, initial_weights(network, Key{1}), kTolerance);
  }
}

// An image [H, W, C] has as many values.
TEST(FastNetworkTest, RefusesImagesOfAnotherShape) {
  const Network network = named("small");
  FastNetwork fast(network, initial_weights(network, Key{1}), kBatch);
  for (const Shape& shape : {Shape{32, 32, 3}, Shape{3, 32, 33}, Shape{3, 16, 16}}) {
    EXPECT_THROW(fast(noisy_images(shape)), Error);
  }
}

// Norms are not the identity; folded, and as layers of their own. Twenty convolutions by tiles of
// sums whose rounding the scheme multiplies by about ten: ten times the above.
TEST(FastNetworkTest, GivesTheLogitsOfResidualNetworks) {
  for (const std::string name : {"resnet8", "resnet20", "resnet8-a"}) {
    SCOPED_TRACE(name);
    const Network network = named(name);
    const Weights weights = reference::lively_weights(network, std::sqrt(6.0f));
    expect_same(network, weights, 10 * kTolerance, 2);
    const Model folded = fold_batch_norm({network, weights});
    expect_same(folded.network, folded.weights, 10 * kTolerance, 2);
  }
}

// Pre-activation blocks have norms that do not fold; VGG-16 has biases before its norms.
TEST(FastNetworkTest, GivesTheLogitsOfWideNetworks) {
  for (const Network& network : {named("wrn-10-1"), named("wrn-16-1"), thin_network("resnet18", 4),
                                 thin_network("vgg16-bn", 4)}) {
    SCOPED_TRACE(network.name);
    const Weights weights = reference::lively_weights(network, std::sqrt(6.0f));
    expect_same(network, weights, 10 * kTolerance, 2);
    const Model folded = fold_batch_norm({network, weights});
    expect_same(folded.network, folded.weights, 10 * kTolerance, 2);
  }
}

// After norms, sums, products of every kind, and before pools.
TEST(FastNetworkTest, GivesTheLogitsOfOtherActivations) {
  using Kind = Layer::Kind;
  for (const Kind kind : {Kind::kLeakyRelu, Kind::kSilu, Kind::kGelu}) {
    for (const std::string name : {"small", "resnet8", "wrn-10-1"}) {
      SCOPED_TRACE(fmt::format("{}, {}", name, static_cast<int>(kind)));
      const Network network = with_activation(named(name), kind);
      const Weights weights = reference::lively_weights(network, std::sqrt(6.0f));
      expect_same(network, weights, 10 * kTolerance, 2);
      const Model folded = fold_batch_norm({network, weights});
      expect_same(folded.network, folded.weights, 10 * kTolerance, 2);
    }
  }
}

// A network of odd sizes, with sums after products of every kind, and after none.
TEST(FastNetworkTest, AddsSavedMaps) {
  using Kind = Layer::Kind;
  const auto conv = [](const std::string& name, int64_t outputs, int64_t kernel, int64_t stride,
                       int64_t padding) {
    return Layer{Kind::kConv, name, outputs, kernel, stride, padding};
  };
  const Layer relu{Kind::kRelu}, pool{Kind::kMaxPool, "", 0, 2, 2};
  const Network network = {
      "sums",
      {2, 16, 16},
      {normalize({0.1, 0.2}, {0.5, 2.0}),
       residual({conv("a", 2, 3, 1, 1)}, {}),
       conv("b", 16, 3, 1, 1),
       relu,
       residual({conv("c", 16, 3, 1, 1)}, {relu}),
       pool,
       residual({}, {}),
       relu,
       residual({conv("d", 24, 3, 2, 1), {Kind::kBatchNorm, "n"}},
                {{Kind::kSubsample, "", 24, 1, 2}}),
       relu,
       residual({{Kind::kAvgPool}, {Kind::kLinear, "e", 24}, relu}, {{Kind::kAvgPool}}),
       residual({{Kind::kLinear, "f", 24}}, {}),
       relu,
       {Kind::kLinear, "g", 3}}};
  expect_same(network, reference::lively_weights(network, 1), kTolerance);
}

TEST(FastNetworkTest, AnImageDoesNotDependOnItsPlace) {
  const Model model =
      fold_batch_norm({named("resnet8"), initial_weights(named("resnet8"), Key{1})});
  const Array images = noisy_images(model.network.input);
  FastNetwork fast(model.network, model.weights, kBatch), alone(model.network, model.weights, 1);
  const Array all = fast(images);
  for (const int64_t i : {0, 7, 29}) {
    EXPECT_TRUE(same_bits(alone(images.part(i, 1)), all.part(i, 1))) << i;
  }
}

TEST(FastNetworkTest, TakesOtherLayersAndSizes) {
  using Kind = Layer::Kind;
  Layer normalize{Kind::kNormalize};
  normalize.mean = {0.1, 0.2};
  normalize.sd = {0.5, 2.0};
  const Layer odd_conv{Kind::kConv, "a", 6, 3, 2, 2}, same_conv{Kind::kConv, "b", 5, 5, 1, 2};
  Layer no_bias{Kind::kConv, "c", 4, 2, 1, 0};
  no_bias.bias = false;
  const Layer pool{Kind::kMaxPool, "", 0, 3, 2}, relu{Kind::kRelu}, dropout{Kind::kDropout};
  const Layer hidden{Kind::kLinear, "d", 9}, last{Kind::kLinear, "e", 10};
  const Network network = {
      "odd",
      {2, 13, 9},
      {normalize, odd_conv, pool, relu, same_conv, no_bias, relu, dropout, hidden, relu, last}};
  expect_same(network, initial_weights(network, Key{2}), kTolerance);
}

TEST(FastNetworkTest, KeepsNaN) {
  for (const std::string name : {"alexnet", "small"}) {
    const Network network = named(name);
    FastNetwork fast(network, initial_weights(network, Key{1}), kBatch);
    for (const int64_t pixel : {0, 10, 31}) {
      Array images = noisy_images(network.input);
      images[3][1][pixel].floats()[10] = NAN;
      const Array logits = fast(images);
      for (int64_t i = 0; i < logits.count(); ++i) {
        EXPECT_EQ(std::isnan(logits.floats()[i]), i / 10 == 3) << name << ", row " << pixel;
      }
    }
  }
}

// Convolutions by schemes with and without a ReLU and pooling behind them.
TEST(FastNetworkTest, TakesLayersInAnyOrder) {
  using Kind = Layer::Kind;
  Layer normalize{Kind::kNormalize};
  normalize.mean = {0.1, 0.2};
  normalize.sd = {0.5, 2.0};
  const Layer strided{Kind::kConv, "a", 16, 5, 2, 2}, conv{Kind::kConv, "b", 48, 3, 1, 1};
  const Layer pool{Kind::kMaxPool, "", 0, 2, 2}, other_pool{Kind::kMaxPool, "", 0, 3, 1};
  const Layer relu{Kind::kRelu}, last{Kind::kLinear, "c", 10};
  for (const std::vector<Layer>& layers : {std::vector<Layer>{normalize, strided, conv, last},
                                           {normalize, strided, pool, relu, conv, relu, last},
                                           {normalize, strided, relu, other_pool, conv, last},
                                           {normalize, conv, pool, strided, relu, last}}) {
    const Network network = {"any", {2, 16, 16}, layers};
    expect_same(network, initial_weights(network, Key{2}), kTolerance);
  }
}

TEST(FastNetworkTest, CopiesRunBesideEachOther) {
  const Network network = named("small");
  FastNetwork first(network, initial_weights(network, Key{1}), kBatch);
  FastNetwork second = first;
  const Array images = noisy_images(network.input), others = each(images, std::negate<float>());
  const Array expected = first(images), expected_others = second(others);
  FastNetwork copy = first;
  std::atomic<int> differ = 0;
  const auto repeat = [&differ](FastNetwork& network, const Array& x, const Array& y) {
    for (int i = 0; i < 30; ++i) differ += !same_bits(network(x), y);
  };
  std::thread beside(repeat, std::ref(copy), std::ref(others), std::ref(expected_others));
  repeat(first, images, expected);
  beside.join();
  EXPECT_EQ(differ, 0);
}

TEST(FastNetworkTest, NamesTheStageThatItDoesNotKnow) {
  EXPECT_EQ(FastNetwork::refusal(named("resnet20")), "");
  EXPECT_EQ(FastNetwork::refusal(named("resnet20-gn")),
            "stage conv1 (conv, group-norm, relu) has group-norm, which this engine does not "
            "compute");
  using Kind = Layer::Kind;
  const Layer mean{Kind::kAvgPool}, conv{Kind::kConv, "a", 3, 3, 1, 1};
  const auto of = [](std::vector<Layer> layers) {
    return FastNetwork::refusal({"test", {3, 4, 4}, std::move(layers)});
  };
  const Layer first = normalize({0.1, 0.2, 0.3}, {0.5, 0.6, 0.7});
  EXPECT_EQ(of({}), "it has no layers");
  EXPECT_EQ(of({first, conv, mean}), "");
  EXPECT_EQ(of({first, conv}), "it ends in a map, not in logits");
  const std::string end = ": the first stage, and no other, has to normalise the images";
  EXPECT_EQ(of({conv, mean}), "stage a (conv, avg-pool)" + end);
  EXPECT_EQ(of({first, conv, first, mean}), "stage 2 (normalize, avg-pool)" + end);
  EXPECT_EQ(of({residual({first}, {}), mean}), "stage 0.body.0 (normalize, sum, avg-pool)" + end);
  EXPECT_EQ(of({residual({conv}, {first}), mean}), "stage a (conv, sum, avg-pool)" + end);
}

}  // namespace
}  // namespace fedsmooth
