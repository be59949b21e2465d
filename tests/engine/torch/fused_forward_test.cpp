#if defined(FEDSMOOTH_CUDA) && defined(FEDSMOOTH_TORCH)

#include "fedsmooth/engine/torch/fused_forward.h"

#include <gtest/gtest.h>

#include "fedsmooth/engine/gpu.h"
#include "fedsmooth/engine/torch/torch_engine.h"
#include "fedsmooth/model/fold.h"
#include "tests/engine/networks.h"
#include "tests/engine/torch/tensors.h"

namespace fedsmooth {
namespace {

using at::Tensor;
using Kind = Layer::Kind;

Model folded_resnet() {
  const Network network = named_network("resnet20");
  Model model{network, initial_weights(network, Key{1})};
  return fold_batch_norm(model);
}

double relative_error(const Tensor& found, const Tensor& expected) {
  return ((found - expected).norm() / expected.norm()).item<double>();
}

// Only the order of few sums may differ, by half a unit in the last place of float32 a layer.
void expect_same(const Model& model) {
  const Shape& in = model.network.input;
  const Array values = uniform({4, in[0], in[1], in[2]}, 3);
  const Tensor images = as_tensor(values), before = images.clone();
  const Tensors weights = tensors_of(model.weights);
  const Tensor expected = torch_forward(model.network, weights, images);
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    const Tensor x = images.contiguous(format);
    EXPECT_LT(relative_error(fused_forward(model.network, weights, x), expected), 100 * 0x1p-24);
    EXPECT_TRUE(at::equal(x, before));
  }
}

TEST(FusedForwardTest, GivesTheLogitsOfTorchForward) {
  expect_same(folded_resnet());
  const Network alexnet = named_network("alexnet");
  expect_same({alexnet, initial_weights(alexnet, Key{1})});
}

// Blocks without a convolution at their end, without a body, in one another, and before what is no
// ReLU.
TEST(FusedForwardTest, OverwritesNothingThatIsStillNeeded) {
  const Layer relu = layer(Kind::kRelu, ""), dropout = layer(Kind::kDropout, "");
  const Layer same = layer(Kind::kConv, "same", 2, 3, 1, 1), bn = layer(Kind::kBatchNorm, "bn");
  const Layer last = layer(Kind::kConv, "last", 2), normalize = two_channel_normalization();
  const std::vector<std::vector<Layer>> lists = {
      {relu},
      {dropout, relu},
      {residual({}, {}), relu},
      {normalize, residual({relu}, {}), relu},
      {normalize, residual({}, {relu}), dropout, relu},
      {normalize, residual({dropout, residual({same}, {})}, {last}), relu},
      {normalize, residual({same}, {bn, relu}), last},
      {normalize, residual({same}, {layer(Kind::kSilu, "")}), layer(Kind::kGelu, ""), last},
      {normalize, same, residual({residual({relu}, {last}), bn}, {}), residual({}, {})}};
  for (const std::vector<Layer>& layers : lists) {
    const Network network = {"test", {2, 6, 6}, layers};
    expect_same({network, initial_weights(network, Key{2})});
  }
}

TEST(FusedForwardTest, WantsExactlyTheNetworksTensors) {
  const Model model = folded_resnet();
  const Array images = uniform({1, 3, 32, 32}, 3);
  Tensors weights = tensors_of(model.weights);
  const Tensor extra = weights.back();
  weights.push_back(extra);
  EXPECT_THROW(fused_forward(model.network, weights, as_tensor(images)), c10::Error);
  weights.resize(weights.size() - 2);
  EXPECT_THROW(fused_forward(model.network, weights, as_tensor(images)), c10::Error);
}

// bfloat16 rounds maps and weights by a relative 2^-9 each; their errors are of either sign, so
// over 20 layers they grow like roots: 2 sqrt(20) 2^-9 is 0.018, and three times that is allowed.
TEST(FusedForwardTest, RunsOnTheGpu) {
  if (!gpu_unavailable_reason().empty()) GTEST_SKIP() << gpu_unavailable_reason();
  if (!missing_for_torch_gpu().empty()) GTEST_SKIP() << "LibTorch was not built for CUDA";
  const Model model = folded_resnet();
  const Array values = uniform({64, 3, 32, 32}, 3);
  const Tensor images = as_tensor(values);
  const Tensors exact = tensors_of(model.weights);
  Tensors weights;
  for (const Tensor& w : exact) {
    const Tensor moved = w.to(at::kCUDA, at::kBFloat16);
    weights.push_back(w.dim() == 4 ? moved.contiguous(at::MemoryFormat::ChannelsLast) : moved);
  }
  const Tensor x = images.to(at::kCUDA, at::kBFloat16).contiguous(at::MemoryFormat::ChannelsLast);
  const Tensor found = fused_forward(model.network, weights, x).to(at::kCPU, at::kFloat);
  EXPECT_LT(relative_error(found, torch_forward(model.network, exact, images)), 0.054);
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(FusedForwardTest, NeedsNvccAndLibTorch) { GTEST_SKIP() << "built without one of them"; }
#endif
