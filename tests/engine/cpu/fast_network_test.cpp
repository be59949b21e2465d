#include "fedsmooth/engine/cpu/fast_network.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "fedsmooth/model/architectures.h"

namespace fedsmooth {
namespace {

constexpr int64_t kBatch = 30;  // no multiple of the rows that are computed at a time

Network named(const std::string& name, const Shape& input = {3, 32, 32}) {
  ModelOptions options{name};
  set_default_normalization(options, "cifar10", input[0]);
  return build_network(options, input, 10);
}

Tensor noisy_images(const Shape& shape) {
  Tensor images = at::empty({kBatch, shape[0], shape[1], shape[2]});
  fill_normal({make_key(1, Purpose::kProbe)}, 0, images.data_ptr<float>(), images.numel());
  return images.mul_(0.5).add_(0.5);
}

// Relative error of the logits against the same network in double.
void expect_same(const Network& network, const Weights& weights, double tolerance) {
  ASSERT_TRUE(FastNetwork::supports(network));
  const Tensor images = noisy_images(network.input);
  Weights exact;
  for (const Tensor& w : weights) exact.push_back(w.to(at::kDouble));
  const Tensor expected = forward(network, exact, images.to(at::kDouble));
  FastNetwork fast(network, weights, kBatch);
  const Tensor found = fast(images).to(at::kDouble);
  EXPECT_LT(((found - expected).norm() / expected.norm()).item<double>(), tolerance);
}

// Each of about ten layers sums up to 4,608 products of fp32 numbers; with errors that add like a
// random walk that is 10 * sqrt(4608) * 2^-24 = 4e-5 at the very worst and far less in practice.
constexpr double kTolerance = 1e-5;

TEST(FastNetworkTest, GivesTheLogitsOfForward) {
  for (const std::string name : {"alexnet", "alexnet-fc", "small"}) {
    SCOPED_TRACE(name);
    const Network network = named(name);
    expect_same(network, initial_weights(network, Key{1}), kTolerance);
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
      Tensor images = noisy_images(network.input);
      images[3][1][pixel][10] = NAN;
      const Tensor broken = fast(images).isnan();
      EXPECT_TRUE(broken[3].all().item<bool>()) << name << ", row " << pixel;
      EXPECT_EQ(broken.any(1).sum().item<int64_t>(), 1) << name << ", row " << pixel;
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

TEST(FastNetworkTest, CopiesDoNotShareScratch) {
  const Network network = named("small");
  FastNetwork first(network, initial_weights(network, Key{1}), kBatch);
  FastNetwork second = first;
  const Tensor images = noisy_images(network.input);
  const Tensor a = first(images), kept = a.clone();
  second(images.neg());
  EXPECT_TRUE(at::equal(a, kept));
}

TEST(FastNetworkTest, LeavesResidualNetworksToLibTorch) {
  EXPECT_FALSE(FastNetwork::supports(named("resnet20")));
}

}  // namespace
}  // namespace fedsmooth
