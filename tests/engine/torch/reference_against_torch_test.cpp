// The reference against an oracle from elsewhere: LibTorch's operators and their autograd.
#ifdef FEDSMOOTH_TORCH

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "fedsmooth/engine/torch/torch_forward.h"
#include "tests/engine/networks.h"
#include "tests/engine/passes.h"

namespace fedsmooth {
namespace {

using at::Tensor;

// Every kind of layer, with odd sizes, overlapping windows and strides that leave pixels out.
Network every_kind() {
  using Kind = Layer::Kind;
  Layer dropout = layer(Kind::kDropout, "");
  dropout.drop_rate = 0.3;
  Layer without_bias = layer(Kind::kConv, "c", 6, 3, 2, 1);
  without_bias.bias = false;  // the batch norm behind it would leave it no gradient
  const Layer relu = layer(Kind::kRelu, "");
  return {"every",
          {2, 25, 19},
          {two_channel_normalization(), layer(Kind::kConv, "a", 7, 4, 3, 2),
           layer(Kind::kBatchNorm, "b"), relu, layer(Kind::kMaxPool, "", 0, 2, 1), dropout,
           residual({without_bias, layer(Kind::kBatchNorm, "d"), relu},
                    {layer(Kind::kConv, "e", 6, 1, 2)}),
           residual({layer(Kind::kConv, "i", 8, 3, 2, 1)}, {layer(Kind::kSubsample, "", 8, 1, 2)}),
           residual({dropout, layer(Kind::kConv, "f", 8, 3, 1, 1)}, {}), relu,
           residual({layer(Kind::kAvgPool, "")}, {layer(Kind::kLinear, "g", 8)}), dropout, relu,
           layer(Kind::kLinear, "j", 8), layer(Kind::kSilu, ""), layer(Kind::kGelu, ""),
           layer(Kind::kLeakyRelu, ""), layer(Kind::kLinear, "h", 3)}};
}

std::vector<std::string> names() {
  std::vector<std::string> all = architecture_names();
  std::erase(all, "vgg16-bn");   // batch norms leave its biases no gradient
  std::erase(all, "wrn-28-10");  // wrn-16-4 has all of its kinds of blocks
  all.push_back("every");
  return all;
}

Network network_called(const std::string& name) {
  if (name == "resnet18" || name == "wrn-16-4") return thin_network(name, 4);
  return name == "every" ? every_kind() : named_network(name);
}

// As PassResult, in double.
struct Pass {
  Tensor logits, images;
  std::vector<Tensor> weights;
};

Pass torch_pass(const Network& network, const Weights& weights, const Array& images,
                const std::optional<Stream>& training) {
  const std::vector<Parameter> all = parameters(network);
  const Tensor x = as_tensor(images).to(at::kDouble).requires_grad_(true);
  Tensors values, inputs = {x};
  for (size_t i = 0; i < all.size(); ++i) {
    values.push_back(as_tensor(weights[i]).to(at::kDouble));
    if (all[i].trained) inputs.push_back(values.back().requires_grad_(true));
  }
  const Tensor logits = torch_forward(network, values, x, training);
  const Array factors = logit_factors({logits.size(0), logits.size(1)});
  const Tensors gradients =
      torch::autograd::grad({logits}, inputs, {as_tensor(factors).to(logits)});
  Pass pass{logits.detach(), gradients[0]};
  size_t next = 1;
  for (size_t i = 0; i < all.size(); ++i) {
    pass.weights.push_back(all[i].trained ? gradients[next++] : values[i]);
  }
  return pass;
}

Tensor tensor_of(const std::vector<double>& values, at::IntArrayRef sizes) {
  return at::tensor(at::ArrayRef<double>(values), at::kDouble).view(sizes);
}

Pass reference_pass(const Network& network, const Weights& weights, const Array& images,
                    const std::optional<Stream>& training) {
  const std::vector<Parameter> all = parameters(network);
  auto exact = reference::network_of<double>(network, weights);
  const auto logits = exact.forward(reference::map_of<double>(images), training);
  const Sizes sizes = {logits.images, logits.size()};
  const Array factors = logit_factors(sizes).with_sizes({sizes[0], sizes[1], 1, 1});
  const auto gradients = exact.backward(reference::map_of<double>(factors));
  Pass pass{tensor_of(logits.values, sizes), tensor_of(gradients.images.values, images.sizes())};
  for (size_t i = 0; i < all.size(); ++i) {
    pass.weights.push_back(
        tensor_of(all[i].trained ? gradients.weights[i] : exact.weights[i], all[i].shape));
  }
  return pass;
}

void expect_close(const Tensor& found, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(found.sizes(), expected.sizes()) << what;
  // Rounding of some hundred layers in double, with as much again to spare.
  const double scale = expected.abs().max().item<double>();
  EXPECT_LE((found - expected).abs().max().item<double>(), 1e-10 * scale) << what << " " << scale;
  EXPECT_GT(scale, 0) << what;
}

class ReferenceAgainstTorchTest : public testing::TestWithParam<std::string> {
 protected:
  void expect_same(const std::optional<Stream>& training) const {
    const Network network = network_called(GetParam());
    const auto [c, h, w] = network.input;
    const Weights weights = reference::lively_weights(network, /*gain=*/1);
    const Array images = uniform({3, c, h, w}, 2);
    const Pass expected = torch_pass(network, weights, images, training);
    const Pass found = reference_pass(network, weights, images, training);
    expect_close(found.logits, expected.logits, "logits");
    expect_close(found.images, expected.images, "gradient of the images");
    for (size_t i = 0; i < found.weights.size(); ++i) {
      expect_close(found.weights[i], expected.weights[i], parameters(network)[i].name);
    }
  }
};

TEST_P(ReferenceAgainstTorchTest, AnswersAlike) { expect_same({}); }

// Statistics of the batch, and the same values dropped.
TEST_P(ReferenceAgainstTorchTest, TrainsAlike) {
  expect_same(Stream{make_key(1, Purpose::kDropout), 5, 6});
}

// In float, over up to a hundred layers.
TEST_P(ReferenceAgainstTorchTest, FloatsAreNear) {
  const Network network = network_called(GetParam());
  const auto [c, h, w] = network.input;
  const Weights weights = reference::lively_weights(network, /*gain=*/1);
  const Array images = uniform({3, c, h, w}, 2);
  const Tensor expected = torch_pass(network, weights, images, {}).logits;
  const Tensor found = as_tensor(reference_logits(network, weights, images)).to(at::kDouble);
  EXPECT_LT(((found - expected).norm() / expected.norm()).item<double>(), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Networks, ReferenceAgainstTorchTest, testing::ValuesIn(names()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(ReferenceAgainstTorchTest, NeedsLibTorch) { GTEST_SKIP() << "built without LibTorch"; }
#endif
