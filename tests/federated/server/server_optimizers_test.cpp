#include "fedsmooth/federated/server/server_optimizers.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fedsmooth/base/error.h"
#include "fedsmooth/engine/reference/reference_passes.h"
#include "tests/arrays.h"
#include "tests/federated/small_training.h"

namespace fedsmooth {
namespace {

const Network kLinear{"linear", {1, 1, 1}, {{Layer::Kind::kLinear, "linear", 1}}};

// A weight and a bias of twice its value.
Weights both(float value) { return {Array::full({1, 1}, value), Array::full({1}, 2 * value)}; }

// The weight after each round, if the clients' averages are these, from 0 on.
std::vector<double> path(const ServerOptions& options, const std::vector<float>& averages) {
  Weights global = both(0);
  NamedWeights kept;
  std::vector<double> weights;
  for (const float average : averages) {
    server_step(options, kLinear, both(average), global, kept);
    weights.push_back(global[0].floats()[0]);
  }
  return weights;
}

TEST(ServerOptimizersTest, TheAverageIsTakenAsItIs) {
  EXPECT_EQ(path({}, {0.1f, 3, -7}), (std::vector<double>{0.1f, 3, -7}));
}

// w = 0.5; w = 0.5 + 0.25; w = 0.75 - 1.375. A step above 1 goes beyond the average.
TEST(ServerOptimizersTest, TheAverageHasALearningRate) {
  EXPECT_EQ(path({.learning_rate = 0.5}, {1, 1, -2}), (std::vector<double>{0.5, 0.75, -0.625}));
  EXPECT_EQ(path({.learning_rate = 1.5}, {1, 1}), (std::vector<double>{1.5, 0.75}));
  EXPECT_EQ(path({.learning_rate = 1}, {0.1f, 3, -7}), path({}, {0.1f, 3, -7}));
}

// In three rounds in which each client moves by 1 from where it starts: lambda = 0.5 sends 0, then
// 1 + 0.5, then 2.5 + 0.75. Delta = 1, v = 1, w = 1; v = 0.5 + 1, w = 2.5; v = 0.75 + 1, w = 4.25.
TEST(ServerOptimizersTest, AcgSendsWeightsMovedByItsMomentum) {
  const ServerOptions options{.optimizer = "acg", .momentum = 0.5};
  Weights global = both(0);
  NamedWeights kept;
  std::vector<float> sent, w;
  for (int round = 0; round < 3; ++round) {
    const Weights start = weights_to_send(options, kLinear, global, kept);
    sent.push_back(start[0].floats()[0]);
    EXPECT_EQ(start[1].floats()[0], 2 * sent.back());
    server_step(options, kLinear,
                {Array::full({1, 1}, sent.back() + 1), Array::full({1}, 2 * sent.back() + 2)},
                global, kept);
    w.push_back(global[0].floats()[0]);
  }
  EXPECT_EQ(sent, (std::vector<float>{0, 1.5, 3.25}));
  EXPECT_EQ(w, (std::vector<float>{1, 2.5, 4.25}));
}

// With eta = 1 what is sent cancels out: w becomes the average, and v the last movement.
TEST(ServerOptimizersTest, AcgEndsARoundAtTheAverage) {
  const std::vector<float> averages = {0.25f, 3, -7, 0.5f};
  const std::vector<double> found = path({.optimizer = "acg", .momentum = 0.85}, averages);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], averages[i], 1e-6) << i;
  // Half of the rate: Delta = 1, v = 0.5, w = 0.5; Delta = 1 - 0.75, v = 0.25 + 0.125, w = 0.875.
  EXPECT_EQ(path({.optimizer = "acg", .learning_rate = 0.5, .momentum = 0.5}, {1, 1}),
            (std::vector<double>{0.5, 0.875}));
}

TEST(ServerOptimizersTest, OtherRulesSendTheGlobalWeights) {
  for (const std::string name : {"average", "momentum", "adam", "yogi", "adagrad"}) {
    ServerOptions options{.optimizer = name, .learning_rate = 0.5};
    Weights global = both(0);
    NamedWeights kept;
    server_step(options, kLinear, both(1), global, kept);
    expect_same(weights_to_send(options, kLinear, global, kept), global);
  }
}

// Of rounds 1 to 4 with models 8, 1, 2, 6 those from round 2 on have the mean 3.
TEST(ServerOptimizersTest, LateModelsAreAveraged) {
  NamedWeights kept;
  Weights global;
  int64_t round = 0;
  for (const float model : {8.0f, 1.0f, 2.0f, 6.0f}) {
    global = both(model);
    const Weights handed_out = global;
    average_late_models({.average_from = 2}, ++round, 4, global, kept);
    EXPECT_EQ(handed_out[0].floats()[0], model);
    if (round < 4) {
      EXPECT_EQ(global[0].floats()[0], model);
    }
  }
  EXPECT_EQ(global[0].floats()[0], 3);
  EXPECT_EQ(global[1].floats()[0], 6);
}

TEST(ServerOptimizersTest, ARunEndsWithTheMeanOfItsLateModels) {
  const LocalTask task = linear_task();
  const Partition p = partition(PartitionKind::kIid);
  SerialExecutor executor(reference_passes);
  TrainOptions options{.rounds = 4, .clients_per_round = 2};
  std::vector<Weights> models;
  const OnRound keep = [&](const ServerState& now, const auto&) {
    models.push_back(now.global);
    return true;
  };
  ServerState plain = start(task), averaged = start(task);
  train({task, options, p, plain, keep}, executor);
  options.server.average_from = 3;
  train({task, options, p, averaged, [](const auto&, const auto&) { return true; }}, executor);
  ASSERT_EQ(models.size(), 4u);
  for (size_t i = 0; i < averaged.global.size(); ++i) {
    const float *a = models[2][i].floats(), *b = models[3][i].floats();
    for (int64_t j = 0; j < averaged.global[i].count(); ++j) {
      EXPECT_NEAR(averaged.global[i].floats()[j], (double{a[j]} + b[j]) / 2, 1e-6);
    }
  }
  EXPECT_FALSE(same_bits(averaged.global[0], plain.global[0]));
}

// v = 1, w = 1; v = 0.5 + 0, w = 1.5; v = 0.25 + 0.5, w = 2.25.
TEST(ServerOptimizersTest, MomentumIsTheHeavyBall) {
  EXPECT_EQ(path({.optimizer = "momentum", .momentum = 0.5}, {1, 1, 2}),
            (std::vector<double>{1, 1.5, 2.25}));
  // With half of the rate: v = 1, w = 0.5; v = 0.5 + 0.5, w = 1; v = 0.5 + 1, w = 1.75.
  EXPECT_EQ(path({.optimizer = "momentum", .learning_rate = 0.5, .momentum = 0.5}, {1, 1, 2}),
            (std::vector<double>{0.5, 1, 1.75}));
}

// The formulas once more, in double throughout. State in float is off by 2^-24 of its size.
TEST(ServerOptimizersTest, AdaptiveRulesFollowTheirFormulas) {
  const std::vector<float> averages = {0.5f, -0.25f, 0.125f, 2.0f, 2.0f};
  for (const std::string name : {"adam", "yogi", "adagrad"}) {
    for (const std::optional<double> beta1 : {std::optional<double>{}, std::optional(0.5)}) {
      const ServerOptions o{
          .optimizer = name, .learning_rate = 0.1, .beta1 = beta1, .beta2 = 0.8, .tau = 0.01};
      const double b1 = beta1.value_or(name == "adagrad" ? 0 : 0.9);
      double w = 0, u = 0, v = o.tau * o.tau;
      std::vector<double> expected;
      for (const double average : averages) {
        const double delta = average - w, square = delta * delta;
        u = b1 * u + (1 - b1) * delta;
        if (name == "adam") v = o.beta2 * v + (1 - o.beta2) * square;
        if (name == "yogi") v = v - (1 - o.beta2) * square * (v > square ? 1 : -1);
        if (name == "adagrad") v = v + square;
        w += o.learning_rate * u / (std::sqrt(v) + o.tau);
        expected.push_back(w);
      }
      const std::vector<double> found = path(o, averages);
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_NEAR(found[i], expected[i], 1e-6) << name << " " << i;
      }
    }
  }
}

// Adagrad without memory of the past: v = tau^2 + Delta^2, so that a large tau makes it SGD.
TEST(ServerOptimizersTest, AdaptiveRulesHaveThePublishedDefaults) {
  const double v = 1e-6 * 0.99 + 0.01;
  EXPECT_NEAR(path({.optimizer = "adam", .learning_rate = 1}, {1})[0], 0.1 / (std::sqrt(v) + 1e-3),
              1e-6);
  EXPECT_NEAR(path({.optimizer = "yogi", .learning_rate = 1}, {1})[0],
              0.1 / (std::sqrt(1e-6 + 0.01) + 1e-3), 1e-6);
  EXPECT_NEAR(path({.optimizer = "adagrad", .learning_rate = 1}, {1})[0],
              1 / (std::sqrt(1e-6 + 1) + 1e-3), 1e-6);
}

ServerOptions options_of(const std::string& name) {
  return {.optimizer = name, .learning_rate = name == "average" ? 0 : 0.5};
}

// A variance that falls from 1 to 0.1 would be carried below zero by the heavy ball.
TEST(ServerOptimizersTest, EveryRuleAveragesRunningStatistics) {
  const Network network{"norm", {2, 3, 3}, {{Layer::Kind::kBatchNorm, "norm"}}};
  const auto statistics = [](float weight, float mean, float variance) {
    return Weights{Array::full({2}, weight), Array({2}), Array::full({2}, mean),
                   Array::full({2}, variance)};
  };
  for (const std::string& name : server_optimizers().names()) {
    Weights global = statistics(1, 0, 1);
    NamedWeights kept;
    for (int round = 0; round < 2; ++round) {
      server_step(options_of(name), network, statistics(2, 3, 0.1f), global, kept);
      EXPECT_EQ(global[2].floats()[1], 3.0f) << name;
      EXPECT_EQ(global[3].floats()[1], 0.1f) << name;
    }
    EXPECT_NE(global[0].floats()[0], 1.0f) << name;  // trained
  }
}

// A checkpoint may be written by another thread while the next round moves the weights.
TEST(ServerOptimizersTest, CheckpointsKeepTheirValues) {
  for (const std::string& name : server_optimizers().names()) {
    Weights global = both(0);
    NamedWeights kept;
    server_step(options_of(name), kLinear, both(1), global, kept);
    const Weights handed_out = global;
    const NamedWeights state = kept;
    const float before = global[0].floats()[0];
    std::vector<float> state_before;
    for (const auto& [what, weights] : state) state_before.push_back(weights[0].floats()[0]);
    server_step(options_of(name), kLinear, both(3), global, kept);
    EXPECT_NE(global[0].floats()[0], before) << name;
    EXPECT_EQ(handed_out[0].floats()[0], before) << name;
    size_t i = 0;
    for (const auto& [what, weights] : state) {
      EXPECT_EQ(weights[0].floats()[0], state_before[i++]) << name << " " << what;
    }
  }
}

TEST(ServerOptimizersTest, EveryRuleContinuesFromItsStateToTheSameBits) {
  const LocalTask task = linear_task();
  const Partition p = partition(PartitionKind::kIid);
  SerialExecutor executor(reference_passes);
  const auto train_to = [&](ServerState& state, const std::string& name, int64_t rounds) {
    const OnRound until = [&](const ServerState& now, const auto&) { return now.round < rounds; };
    TrainOptions options{.rounds = 4, .clients_per_round = 2};
    options.server = options_of(name);
    options.server.average_from = 2;
    train({task, options, p, state, until}, executor);
  };
  for (const std::string& name : server_optimizers().names()) {
    SCOPED_TRACE(name);
    ServerState whole = start(task), cut = start(task);
    train_to(whole, name, 4);
    train_to(cut, name, 2);
    ServerState resumed{cut.round, cut.global, cut.kept};
    train_to(resumed, name, 4);
    EXPECT_EQ(resumed.round, 4);
    expect_same(resumed.global, whole.global);
    for (const auto& [what, weights] : whole.kept) expect_same(resumed.kept.at(what), weights);
  }
}

std::string refusal_of(const ServerOptions& options) {
  try {
    check_server_options(options);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(ServerOptimizersTest, RefusesInvalidOptions) {
  EXPECT_EQ(refusal_of({}), "");
  EXPECT_EQ(refusal_of({.optimizer = "momentum"}), "");
  EXPECT_EQ(refusal_of({.optimizer = "yogi", .learning_rate = 0.1}), "");
  EXPECT_EQ(refusal_of({.optimizer = "adam"}),
            "server.learning_rate: server.optimizer=\"adam\" needs one; try 0.01");
  EXPECT_EQ(refusal_of({.optimizer = "adm"}).rfind("server.optimizer=\"adm\": must be average", 0),
            0U);
}

}  // namespace
}  // namespace fedsmooth
