#include "fedsmooth/engine/cuda/batched_plan.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/engine/networks.h"

namespace fedsmooth {
namespace {

Network network_called(const std::string& name) {
  if (name != "odd") return named_network(name);
  using Kind = Layer::Kind;
  return {"odd",
          {2, 13, 10},
          {two_channel_normalization(), layer(Kind::kConv, "a", 7, 5, 3, 1), layer(Kind::kRelu, ""),
           layer(Kind::kMaxPool, "", 0, 2, 1), layer(Kind::kConv, "b", 20, 3, 2, 2),
           layer(Kind::kLinear, "c", 6)}};
}

// The network by its plan, in double: what the GPU does, written plainly.
Tensor run_plan(const BatchedPlan& plan, const Weights& weights, const Tensor& images) {
  Tensor vector = at::zeros({plan.size}, at::kDouble);
  std::vector<Tensor> flat;
  for (const Tensor& w : weights) flat.push_back(w.flatten());
  const Tensor values = at::cat(flat).to(at::kDouble);
  const std::vector<int64_t> positions(plan.positions.begin(), plan.positions.end());
  vector.index_put_({at::tensor(positions)}, values);

  const int64_t rows = images.size(0), area = plan.input[1] * plan.input[2];
  const BatchedMap& first = plan.stages.front().in;
  Tensor x = at::zeros({first.pixels(), rows, first.channels}, at::kDouble);
  const Tensor flat_images = images.flatten(1).to(at::kDouble);
  for (size_t i = 0; i < plan.pixel.size(); ++i) {
    if (plan.pixel[i] < 0) continue;
    const size_t c = i / area;
    x[plan.pixel[i]].select(1, plan.channel[i]) =
        (flat_images.select(1, static_cast<int64_t>(i)) - plan.mean[c]) * plan.scale[c];
  }
  for (const BatchedStage& stage : plan.stages) {
    Tensor y = at::zeros({stage.out.pixels(), rows, stage.out.channels}, at::kDouble);
    for (int o = 0; o < stage.out.pixels(); ++o) {
      if (stage.is_pool) {
        y[o].fill_(-1e30);
        for (const Pair& pair : stage.by_output[o]) y[o] = at::maximum(y[o], x[pair.left]);
        continue;
      }
      const int64_t c = stage.in.channels, k = stage.out.channels;
      for (const Pair& pair : stage.by_output[o]) {
        y[o] += x[pair.left].mm(
            vector.narrow(0, stage.kernel + pair.right * c * k, c * k).view({c, k}));
      }
      y[o] += vector.narrow(0, stage.bias, k);
    }
    x = stage.relu && !stage.is_pool ? y.clamp_min(0) : y;
  }
  return x[0].narrow(1, 0, plan.classes);
}

class BatchedPlanCaseTest : public testing::TestWithParam<std::string> {};

TEST_P(BatchedPlanCaseTest, IsTheNetwork) {
  const Network network = network_called(GetParam());
  const Weights weights = initial_weights(network, Key{1});
  const auto [c, h, w] = network.input;
  const Tensor images = uniform({2, c, h, w}, 2);
  const Tensor expected = forward(network, weights, images);
  const Tensor found = run_plan(BatchedPlan(network), weights, images);
  EXPECT_LT((found - expected).abs().max().item<double>(),
            1e-5 * expected.abs().max().item<double>());
}

TEST_P(BatchedPlanCaseTest, ListsTheSamePairsThreeTimes) {
  for (const BatchedStage& stage : BatchedPlan(network_called(GetParam())).stages) {
    std::set<std::array<int, 3>> by_output, by_input, by_tap;  // input, output, tap
    for (size_t o = 0; o < stage.by_output.size(); ++o) {
      for (const Pair& p : stage.by_output[o]) by_output.insert({p.left, int(o), p.right});
    }
    for (size_t i = 0; i < stage.by_input.size(); ++i) {
      for (const Pair& p : stage.by_input[i]) by_input.insert({int(i), p.left, p.right});
    }
    for (size_t t = 0; t < stage.by_tap.size(); ++t) {
      for (const Pair& p : stage.by_tap[t]) by_tap.insert({p.left, p.right, int(t)});
    }
    EXPECT_EQ(by_output, by_input);
    EXPECT_EQ(by_output, by_tap);
    EXPECT_FALSE(by_output.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, BatchedPlanCaseTest, testing::Values("alexnet", "small", "odd"),
                         [](const auto& info) { return info.param; });

TEST(BatchedPlanTest, LeavesOtherNetworksToTheCpu) {
  EXPECT_FALSE(BatchedPlan::supports(network_called("resnet20")));
  EXPECT_FALSE(BatchedPlan::supports(network_called("alexnet-fc")));  // has dropout
}

}  // namespace
}  // namespace fedsmooth
