// How torch_forward() treats what it is given. Its numbers are compared with the reference's.
#ifdef FEDSMOOTH_TORCH

#include "fedsmooth/engine/torch/torch_forward.h"

#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "fedsmooth/engine/torch/fused_forward.h"
#include "tests/engine/networks.h"

namespace fedsmooth {
namespace {

using at::Tensor;
using Kind = Layer::Kind;

/// 1 to 9 as one image of one channel.
Tensor one_to_nine() { return at::arange(1, 10).to(at::kFloat).view({1, 1, 3, 3}); }

Network network_of(std::vector<Layer> layers) { return {"test", {1, 3, 3}, std::move(layers)}; }

Layer normalize(double mean) {
  Layer made{Kind::kNormalize};
  made.mean = {mean};
  made.sd = {1};
  return made;
}

// The message of the exception that `work` throws.
std::string torch_refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const c10::Error& error) {
    return error.what();
  }
  return "(nothing was refused)";
}

// Without gradients maps are overwritten, but neither the images nor what a shortcut still reads.
TEST(TorchForwardTest, OverwritesNothingThatIsStillNeeded) {
  const Layer relu{Kind::kRelu}, dropout{Kind::kDropout};
  const std::vector<std::vector<Layer>> lists = {
      {relu},
      {dropout, relu},
      {residual({}, {})},
      {residual({dropout}, {relu})},
      {normalize(0), residual({relu}, {})},
      {normalize(0), residual({}, {relu}), relu},
      {residual({relu, residual({relu}, {})}, {normalize(1), relu})}};
  for (const std::vector<Layer>& layers : lists) {
    const Tensor images = one_to_nine() - 5, before = images.clone();
    const Network network = network_of(layers);
    const Tensor expected = torch_forward(network, {}, images);
    const c10::NoGradGuard no_grad;
    EXPECT_TRUE(at::equal(torch_forward(network, {}, images), expected));
    EXPECT_TRUE(at::equal(images, before));
  }
}

TEST(TorchForwardTest, AnImagesLogitsDoNotDependOnItsNeighbours) {
  const Tensors weights = {at::ones({1}), at::zeros({1}), at::zeros({1}), at::ones({1})};
  const Tensor image = one_to_nine(), neighbour = image * 100;
  const Network network = network_of({{Kind::kBatchNorm, "bn"}});
  const Tensor alone = torch_forward(network, weights, image);
  const Tensor together = torch_forward(network, weights, at::cat({image, neighbour}));
  EXPECT_TRUE(at::equal(together[0], alone[0]));
}

TEST(TorchForwardTest, RefusesAPropertyThatItDoesNotKnow) {
  Layer conv{Kind::kConv, "conv", 2, 1};
  const Tensors weights = {at::ones({2, 1, 1, 1}), at::zeros({2})};
  EXPECT_NO_THROW(torch_forward(network_of({conv}), weights, one_to_nine()));
  EXPECT_NO_THROW(fused_forward(network_of({conv}), weights, one_to_nine()));
  conv.groups = 2;
  EXPECT_NE(torch_refusal([&] {
              torch_forward(network_of({conv}), weights, one_to_nine());
            }).find("unknown property"),
            std::string::npos);
  EXPECT_NE(torch_refusal([&] {
              fused_forward(network_of({conv}), weights, one_to_nine());
            }).find("unknown property"),
            std::string::npos);
}

TEST(TorchForwardTest, WantsExactlyTheNetworksTensors) {
  const Network network = network_of({{Kind::kLinear, "linear", 1}});
  const Tensor weight = at::zeros({1, 9}), bias = at::zeros({1});
  EXPECT_NE(torch_refusal([&] {
              torch_forward(network, {weight}, one_to_nine());
            }).find("the network has more than 1 tensors"),
            std::string::npos);
  EXPECT_NE(torch_refusal([&] {
              torch_forward(network, {weight, bias, bias}, one_to_nine());
            }).find("more tensors than network"),
            std::string::npos);
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(TorchForwardTest, NeedsLibTorch) { GTEST_SKIP() << "built without it"; }
#endif
