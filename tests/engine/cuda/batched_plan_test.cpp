#ifdef FEDSMOOTH_CUDA

#include "fedsmooth/engine/cuda/batched_plan.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/engine/networks.h"
#include "tests/engine/passes.h"

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

// A map [pixel, row, channel] in double.
struct ExactMap {
  int64_t rows, channels;
  std::vector<double> values;

  ExactMap(const BatchedMap& map, int64_t of_rows, double start = 0)
      : rows(of_rows), channels(map.channels), values(map.pixels() * rows * channels, start) {}
  double& value(int64_t pixel, int64_t row, int64_t channel) {
    return values[(pixel * rows + row) * channels + channel];
  }
};

// What the GPU does for output pixel `o` of a stage, written plainly.
void run_pixel(const BatchedStage& stage, const std::vector<double>& vector, int o, ExactMap& x,
               ExactMap& y) {
  for (int64_t row = 0; row < y.rows; ++row) {
    for (int64_t k = 0; k < y.channels; ++k) {
      double& out = y.value(o, row, k);
      for (const Pair& pair : stage.by_output[o]) {
        if (stage.is_pool) {
          out = std::max(out, x.value(pair.left, row, k));
          continue;
        }
        const double* weights = vector.data() + stage.kernel + pair.right * x.channels * y.channels;
        for (int64_t c = 0; c < x.channels; ++c) {
          out += x.value(pair.left, row, c) * weights[c * y.channels + k];
        }
      }
      if (stage.is_pool) continue;
      out += vector[stage.bias + k];
      if (stage.relu) out = std::max(out, 0.0);
    }
  }
}

// Logits [row, class] of the network by its plan.
Array run_plan(const BatchedPlan& plan, const Weights& weights, const Array& images) {
  std::vector<double> vector(plan.size, 0.0);
  size_t next = 0;
  for (const Array& w : weights) {
    for (const float value : values_of(w)) vector[plan.positions[next++]] = value;
  }
  EXPECT_EQ(next, plan.positions.size());

  const int64_t rows = images.size(0), area = plan.input[1] * plan.input[2];
  ExactMap x(plan.stages.front().in, rows);
  for (int64_t i = 0; i < images.count(); ++i) {
    const int64_t at = i % std::ssize(plan.pixel), row = i / std::ssize(plan.pixel), c = at / area;
    if (plan.pixel[at] < 0) continue;
    x.value(plan.pixel[at], row, plan.channel[at]) =
        (static_cast<double>(images.floats()[i]) - plan.mean[c]) * plan.scale[c];
  }
  for (const BatchedStage& stage : plan.stages) {
    ExactMap y(stage.out, rows, stage.is_pool ? -1e30 : 0);
    for (int o = 0; o < stage.out.pixels(); ++o) run_pixel(stage, vector, o, x, y);
    x = y;
  }
  Array logits({rows, plan.classes});
  for (int64_t i = 0; i < logits.count(); ++i) {
    logits.floats()[i] = static_cast<float>(x.value(0, i / plan.classes, i % plan.classes));
  }
  return logits;
}

class BatchedPlanCaseTest : public testing::TestWithParam<std::string> {};

TEST_P(BatchedPlanCaseTest, IsTheNetwork) {
  const Network network = network_called(GetParam());
  const Weights weights = initial_weights(network, Key{1});
  const auto [c, h, w] = network.input;
  const Array images = uniform({2, c, h, w}, 2);
  expect_close(run_plan(BatchedPlan(network), weights, images),
               reference_logits(network, weights, images), 1e-5, "logits");
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

TEST(BatchedPlanTest, NamesTheStageThatItDoesNotKnow) {
  EXPECT_EQ(BatchedPlan::refusal(network_called("alexnet")), "");
  EXPECT_EQ(BatchedPlan::refusal(network_called("resnet20")),
            "stage conv1 (conv, batch-norm, relu) has batch-norm, which this engine does not "
            "compute");
  EXPECT_EQ(BatchedPlan::refusal(network_called("alexnet-fc")),
            "stage features.10 (conv, relu, max-pool, dropout) has dropout, which this engine does "
            "not compute");
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(BatchedPlanCaseTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
TEST(BatchedPlanTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
