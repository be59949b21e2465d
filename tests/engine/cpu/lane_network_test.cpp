#include "fedsmooth/engine/cpu/lane_network.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/engine/networks.h"

namespace fedsmooth {
namespace {

// Odd sizes, overlapping pools, padding wider than the map, strides that leave pixels out.
Network odd() {
  using Kind = Layer::Kind;
  Layer normalize{Kind::kNormalize};
  normalize.mean = {0.5, 0.1};
  normalize.sd = {0.5, 0.3};
  Network network{"odd",
                  {2, 13, 9},
                  {normalize, layer(Kind::kConv, "", 7, 4, 3, 2), layer(Kind::kRelu, ""),
                   layer(Kind::kMaxPool, "", 0, 2, 1), layer(Kind::kConv, "", 20, 5, 1, 4),
                   layer(Kind::kMaxPool, "", 0, 3, 2), layer(Kind::kConv, "", 16, 3, 2, 1),
                   layer(Kind::kRelu, ""), layer(Kind::kConv, "", 5, 3, 2, 1),
                   layer(Kind::kMaxPool, "", 0, 1, 1), layer(Kind::kLinear, "", 18),
                   layer(Kind::kRelu, ""), layer(Kind::kLinear, "", 3)}};
  for (size_t i = 0; i < network.layers.size(); ++i) network.layers[i].name = std::to_string(i);
  return network;
}

struct Passes {
  Tensor logits, images;
  std::vector<Tensor> weights;
};

// Logits, and the gradients of a weighted sum of them.
Passes run(const Forward& forward, const Weights& start, const Tensor& images) {
  Weights weights, frozen;
  for (const Tensor& w : start) {
    weights.push_back(w.detach().clone().requires_grad_(true));
    frozen.push_back(w.detach());
  }
  const Tensor x = images.detach().requires_grad_(true);
  const Tensor logits = forward(frozen, x, {});
  const Tensor factors = uniform(logits.sizes().vec(), 9) - 0.5;
  Passes passes{logits.detach()};
  passes.images = torch::autograd::grad({(logits * factors).sum()}, {x})[0];
  const Tensor again = forward(weights, images, {});
  passes.weights = torch::autograd::grad({(again * factors).sum()}, weights);
  return passes;
}

// Both round each sum of up to some thousand terms: a relative error of 1e-5 of the largest entry
// is a hundred units in the last place.
void expect_close(const Tensor& a, const Tensor& b, const std::string& what) {
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  const double scale = b.abs().max().item<double>();
  EXPECT_LE((a - b).abs().max().item<double>(), 1e-5 * scale) << what << ", largest " << scale;
  EXPECT_GT(scale, 0) << what;
}

class LaneNetworkCaseTest : public testing::TestWithParam<std::string> {};

TEST_P(LaneNetworkCaseTest, AgreesWithThePlainPasses) {
  const Network network = GetParam() == "odd" ? odd() : named_network(GetParam());
  ASSERT_TRUE(LaneNetwork::supports(network));
  const Weights weights = initial_weights(network, make_key(1, Purpose::kWeights));
  const Forward lanes = differentiable(std::make_shared<LaneNetwork>(network));
  for (const int64_t batch : {1, 16, 21}) {
    const auto [c, h, w] = network.input;
    const Tensor images = uniform({batch, c, h, w}, 2);
    const Passes ours = run(lanes, lay_out_for_lanes(network, weights), images);
    const Passes plain = run(plain_forward(network), weights, images);
    expect_close(ours.logits, plain.logits, "logits");
    expect_close(ours.images, plain.images, "gradient of the images");
    for (size_t i = 0; i < weights.size(); ++i) {
      expect_close(ours.weights[i], plain.weights[i], parameters(network)[i].name);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, LaneNetworkCaseTest, testing::Values("alexnet", "small", "odd"),
                         [](const auto& info) { return info.param; });

TEST(LaneNetworkTest, NoticesChangedWeightsWhateverTheirLayout) {
  const Network network = named_network("alexnet");
  Weights weights = initial_weights(network, make_key(1, Purpose::kWeights));
  const Tensor images = uniform({4, 3, 32, 32}, 2);
  LaneNetwork lanes(network);
  for (int i = 0; i < 3; ++i) {
    expect_close(lanes.forward(weights, images), forward(network, weights, images), "logits");
    for (Tensor& w : weights) w.mul_(0.9);
  }
  weights = lay_out_for_lanes(network, weights);
  expect_close(lanes.forward(weights, images), forward(network, weights, images), "logits");
}

TEST(LaneNetworkTest, AnImageDoesNotDependOnTheOthers) {
  const Network network = named_network("small");
  const Weights weights = initial_weights(network, make_key(1, Purpose::kWeights));
  const Tensor images = uniform({40, 3, 32, 32}, 2);
  LaneNetwork lanes(network);
  const Tensor all = lanes.forward(weights, images);
  EXPECT_TRUE(at::equal(lanes.forward(weights, images.slice(0, 17, 20)), all.slice(0, 17, 20)));
}

TEST(LaneNetworkTest, GradientsOfAnEarlierPassAreRefused) {
  const Network network = named_network("small");
  const Weights weights = initial_weights(network, make_key(1, Purpose::kWeights));
  const Forward lanes = differentiable(std::make_shared<LaneNetwork>(network));
  const Tensor x = uniform({2, 3, 32, 32}, 2).requires_grad_(true);
  const Tensor logits = lanes(weights, x, {});
  lanes(weights, x, {});
  EXPECT_ANY_THROW(torch::autograd::grad({logits.sum()}, {x}));
}

TEST(LaneNetworkTest, LeavesOtherNetworksToLibTorch) {
  EXPECT_FALSE(LaneNetwork::supports(named_network("resnet20")));
  EXPECT_FALSE(LaneNetwork::supports(named_network("alexnet-fc")));  // has dropout
  EXPECT_ANY_THROW(LaneNetwork(named_network("resnet20")));
}

}  // namespace
}  // namespace fedsmooth
