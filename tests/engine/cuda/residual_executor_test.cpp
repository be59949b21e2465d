// Residual networks in the BatchedExecutor, against the reference.
#ifdef FEDSMOOTH_CUDA

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "fedsmooth/data/sources.h"
#include "fedsmooth/engine/cuda/batched_executor.h"
#include "fedsmooth/engine/reference/reference_passes.h"
#include "fedsmooth/engine/threaded_executor.h"
#include "fedsmooth/federated/train.h"
#include "tests/engine/cuda/compared_rounds.h"
#include "tests/engine/cuda/gpu.h"
#include "tests/engine/cuda/rounds.h"
#include "tests/engine/networks.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;
using ResidualExecutorTest = GpuTest;

Layer layer_called(Kind kind, const std::string& name, int64_t outputs = 0, int64_t kernel = 1,
                   int64_t stride = 1, int64_t padding = 0) {
  if (kind != Kind::kConv && kind != Kind::kLinear) return {kind, name};
  Layer layer{kind, name, outputs, kernel, stride, padding};
  layer.bias = false;
  return layer;
}

Layer group_norm(const std::string& name, int64_t groups) {
  Layer layer = layer_called(Kind::kGroupNorm, name);
  layer.groups = groups;
  return layer;
}

// Odd sizes and numbers of channels, a convolution with a bias and no norm, a sum without a ReLU.
Network odd_network() {
  const Layer relu{Kind::kRelu};
  Layer biased{Kind::kConv, "b", 20, 3, 1, 2};
  Layer block{Kind::kResidual}, plain{Kind::kResidual};
  block.body = {layer_called(Kind::kConv, "c", 40, 3, 2, 1), layer_called(Kind::kBatchNorm, "cn"),
                relu, layer_called(Kind::kConv, "d", 40, 3, 1, 1),
                layer_called(Kind::kBatchNorm, "dn")};
  block.shortcut = {{Kind::kSubsample, "", 40, 1, 2}};
  plain.body = {layer_called(Kind::kConv, "e", 40, 1), layer_called(Kind::kBatchNorm, "en")};
  return {"odd",
          {3, 32, 32},
          {normalize({0.5, 0.5, 0.5}, {0.5, 0.4, 0.3}),
           layer_called(Kind::kConv, "a", 7, 3, 2, 0),
           layer_called(Kind::kBatchNorm, "an"),
           relu,
           biased,
           relu,
           block,
           relu,
           plain,
           {Kind::kAvgPool},
           layer_called(Kind::kLinear, "f", 10)}};
}

// The same with group norms, but for one that stays a batch norm.
Network mixed_network() {
  Network network = odd_network();
  network.layers[2] = group_norm("an", 7);          // of one channel
  network.layers[6].body[1] = group_norm("cn", 5);  // of eight
  network.layers[8].body[1] = group_norm("en", 1);
  return network;
}

const Network& network_called(const std::string& name) {
  static std::map<std::string, Network> networks{{"odd", odd_network()},
                                                 {"mixed", mixed_network()}};
  if (networks.count(name) == 0) networks[name] = named_network(name);
  return networks[name];
}

struct Case {
  std::string name, network;
  Method method;
  Estimator estimator = Estimator::kStochastic;
  int64_t passes = 1;
  double mu = 0;     // of FedProx
  double decay = 1;  // of the rate within a round
};

const std::vector<Case> kBatchNormCases = {
    {"Standard", "resnet8", Method::kStandard},
    {"Adversarial", "resnet8", Method::kAdversarial},
    {"Gaussian", "resnet8", Method::kGaussian},
    {"Stochastic", "resnet8", Method::kSmoothAdv},
    {"OnePoint", "resnet8", Method::kSmoothAdv, Estimator::kOnePoint},
    {"TwoPoint", "resnet8", Method::kSmoothAdv, Estimator::kTwoPoint},
    {"Padded", "resnet8-a", Method::kSmoothAdv},
    {"Deep", "resnet20", Method::kGaussian},
    {"Odd", "odd", Method::kSmoothAdv},
    {"TwoPasses", "resnet8", Method::kSmoothAdv, Estimator::kStochastic, 2},
    {"Consistency", "resnet8", Method::kConsistency},
    {"Stability", "resnet8", Method::kStability},
    {"Macer", "resnet8", Method::kMacer},
    {"SmoothMix", "resnet8", Method::kSmoothMix},
    {"CatRs", "resnet8", Method::kCatRs},
    {"Sun", "resnet8", Method::kSun},
    {"Prox", "resnet8", Method::kGaussian, Estimator::kStochastic, 1, 0.1},
    {"FallingRate", "resnet8", Method::kConsistency, Estimator::kStochastic, 1, 0.0, 0.1},
};

// And everything with group norms.
std::vector<Case> all_cases() {
  std::vector<Case> cases = kBatchNormCases;
  for (Case c : kBatchNormCases) {
    if (c.network == "resnet8-a") continue;
    c.name = "GroupNorm" + c.name;
    c.network = c.network == "odd" ? "mixed" : c.network + "-gn";
    cases.push_back(c);
  }
  return cases;
}

LocalTask task_for(const Case& c) {
  LocalTask task{network_called(c.network), shapes(), /*augment=*/true, c.method};
  task.local = {.steps = 2, .batch = 5, .passes = c.passes, .learning_rate = 0.05};
  task.local.mu = c.mu;
  task.local.decay = c.decay;
  task.smoothing.m = 2;
  task.attack.estimator = c.estimator;
  if (c.method == Method::kCatRs || c.method == Method::kSun) add_tables(task);
  return task;
}

class ResidualExecutorCaseTest : public ResidualExecutorTest,
                                 public testing::WithParamInterface<Case> {
 protected:
  // Against the reference, over two steps of three clients.
  void expect_near(Precision precision, double weights, double statistics, double loss,
                   double perturbation) {
    const LocalTask task = task_for(GetParam());
    const auto [found, expected] =
        compare_rounds(task, start(task.network), precision, weights, statistics);
    EXPECT_EQ(found.sum.kept_share(), expected.sum.kept_share());
    EXPECT_NEAR(found.telemetry.mean_loss(), expected.telemetry.mean_loss(), loss);
    EXPECT_EQ(found.telemetry.attacked, expected.telemetry.attacked);
    EXPECT_NEAR(found.telemetry.mean_perturbation(), expected.telemetry.mean_perturbation(),
                perturbation);
    EXPECT_NEAR(found.telemetry.mean_drop(), expected.telemetry.mean_drop(), loss);
  }
};

// Sums in another order differ by 1e-6 of their size; a ReLU that is decided otherwise moves single
// gradients further: 2e-6 to 1e-3 of the movement were measured.
TEST_P(ResidualExecutorCaseTest, TrainsLikeTheReferenceInFloat32) {
  expect_near(Precision::kFloat32, 1e-2, 1e-4, 1e-5, 1e-5);
}

// bfloat16 keeps 8 bits, so that of some thousand ReLUs a few are decided otherwise, more of them
// in a deeper network: 0.05 to 0.12 of the movement were measured, 0.42 in a ResNet-20. Statistics
// are means of many values, and losses hardly change. Two-point subtracts probabilities that are
// nearly the same, so that rounding turns its steps: lengths 0.013 apart were measured.
TEST_P(ResidualExecutorCaseTest, Bfloat16StaysNear) {
  const bool deep = GetParam().network.starts_with("resnet20");
  const bool two_point = GetParam().estimator == Estimator::kTwoPoint;
  expect_near(Precision::kBfloat16, deep ? 0.6 : 0.25, 0.01, 5e-3, two_point ? 0.03 : 5e-3);
}

TEST_P(ResidualExecutorCaseTest, WavesChangeNothing) {
  const LocalTask task = task_for(GetParam());
  const Weights global = start(task.network);
  const auto average = [&](int64_t wave) {
    BatchedExecutor executor(Precision::kBfloat16, wave);
    return run_round(executor, {task, global, cohort_of(9), 4})
        .sum.average(global, parameters(task.network));
  };
  const Weights whole = average(0);
  EXPECT_FALSE(same(whole, global));
  for (const int64_t wave : {0, 1, 2, 7}) EXPECT_TRUE(same(average(wave), whole)) << wave;
}

INSTANTIATE_TEST_SUITE_P(Methods, ResidualExecutorCaseTest, testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.name; });

TEST_F(ResidualExecutorTest, ADivergingClientIsDroppedAndLeavesTheOthersAlone) {
  const LocalTask task = task_for(kBatchNormCases[3]);
  LocalTask wild = task;
  wild.local.learning_rate = 1e30;
  const Weights global = start(task.network);
  BatchedExecutor executor, alone;
  const std::vector<RoundResult> found = executor.run({{task, global, cohort_of(2), 0},
                                                       {wild, global, cohort_of(3), 0},
                                                       {task, global, cohort_of(4), 1}});
  EXPECT_EQ(found[1].dropped, 3);
  EXPECT_TRUE(same(found[0].sum.average(global, parameters(task.network)),
                   run_round(alone, {task, global, cohort_of(2), 0})
                       .sum.average(global, parameters(task.network))));
  EXPECT_TRUE(same(found[2].sum.average(global, parameters(task.network)),
                   run_round(alone, {task, global, cohort_of(4), 1})
                       .sum.average(global, parameters(task.network))));
}

// Kernels by large numbers, so that running variances are beyond the bound of trained weights. What
// the GPU adds up is what the CPU adds up of each client's weights.
TEST_F(ResidualExecutorTest, LargeRunningStatisticsAreAveraged) {
  const LocalTask task = task_for(kBatchNormCases[3]);
  const std::vector<Parameter> known = parameters(task.network);
  Weights global = start(task.network);
  for (size_t i = 0; i < global.size(); ++i) {
    if (known[i].shape.size() != 4) continue;
    for (float& w : std::span(global[i].floats(), global[i].count())) w *= 1e3f;
  }
  const Cohort cohort = cohort_of(5);
  for (const int64_t wave : {0, 2}) {
    BatchedExecutor executor(Precision::kFloat32, wave);
    const RoundResult summed = run_round(executor, {task, global, cohort, 4});
    const RoundResult kept = run_round(executor, {task, global, cohort, 4, 0, Gather::kEach});
    ASSERT_EQ(summed.dropped, 0) << summed.named[0].why;
    ASSERT_EQ(kept.each.size(), 5U);
    EXPECT_TRUE(out_of_bounds(kept.each[0].weights, known, {4096, 4096}));
    FixedPointSum sum;
    for (const ClientWeights& one : kept.each) sum.add(one.weights, known, one.share);
    EXPECT_EQ(summed.sum.words(), sum.words());
    EXPECT_EQ(summed.sum.share(), sum.share());
  }
}

TEST_F(ResidualExecutorTest, ADroppedClientIsNamedWithItsTensor) {
  LocalTask task = task_for(kBatchNormCases[3]);
  const std::vector<Parameter> known = parameters(task.network);
  Weights global = start(task.network);
  const size_t last = global.size() - 1;  // the linear layer's bias
  global[last] = Array::full(global[last].sizes(), 5000);
  BatchedExecutor executor;
  const RoundResult dropped = run_round(executor, {task, global, cohort_of(2), 0});
  ASSERT_EQ(dropped.named.size(), 2U);
  EXPECT_EQ(dropped.named[1].client, cohort_of(2).clients[1]);
  EXPECT_EQ(dropped.named[1].why, known[last].name + " is beyond 4096");
  task.continuous = true;  // without an average there is no bound
  const RoundResult kept = run_round(executor, {task, global, cohort_of(1), 0, 0, Gather::kEach});
  EXPECT_EQ(kept.dropped, 0);
  EXPECT_EQ(kept.each.size(), 1U);
}

TEST_F(ResidualExecutorTest, TwoRunsAndAnInterruptedOneAreTheSame) {
  LocalTask task = task_for(kBatchNormCases[3]);
  TrainOptions options;
  options.rounds = 3;
  options.clients_per_round = 4;
  options.local = task.local;
  PartitionOptions clients;
  clients.clients = 10;
  clients.samples_per_client = 40;
  const Partition partition(clients, shapes().labels, 10, 0);
  const auto train_on = [&](ServerState state, int64_t most) {
    BatchedExecutor executor;
    train({task, options, partition, state,
           [&](const ServerState&, const RoundReport&) { return --most > 0; }},
          executor);
    return state;
  };
  const ServerState begin{0, start(task.network), {}};
  const ServerState whole = train_on(begin, 100);
  EXPECT_TRUE(same(train_on(begin, 100).global, whole.global));
  EXPECT_TRUE(same(train_on(train_on(begin, 1), 100).global, whole.global));
}

ServerState train_centralized(const LocalTask& task, Executor& executor, int64_t rounds) {
  PartitionOptions whole;
  whole.kind = PartitionKind::kWhole;
  const Partition partition(whole, shapes().labels, 10, 0);
  TrainOptions options{.mode = Mode::kCentralized, .rounds = rounds, .clients_per_round = 1};
  options.local = task.local;
  ServerState state{0, start(task.network), {}};
  train(
      {task, options, partition, state, [](const ServerState&, const RoundReport&) { return true; },
       /*number=*/0, [&](const ServerState&, const LocalTask&) { return task.image_weights; }},
      executor);
  return state;
}

// Momentum and streams continue, in residual networks and in others. MACER, SmoothMix and sun also
// depend on the share of the rounds that are done.
TEST_F(ResidualExecutorTest, RoundsOfACentralizedRunAreOneTraining) {
  for (const std::string name : {"resnet8", "resnet8-gn", "small"}) {
    for (const auto& [method_name, method] : method_names()) {
      if (method == Method::kMacer || method == Method::kSmoothMix || method == Method::kSun) {
        continue;
      }
      SCOPED_TRACE(name + " " + method_name);
      const auto train_on = [&](int64_t rounds, int64_t steps) {
        LocalTask task = task_for({"", name, method});
        task.local.steps = steps;
        BatchedExecutor executor;
        return train_centralized(task, executor, rounds);
      };
      const ServerState once = train_on(1, 4), twice = train_on(2, 2), often = train_on(4, 1);
      EXPECT_TRUE(same(twice.global, once.global));
      EXPECT_TRUE(same(often.global, once.global));
      EXPECT_TRUE(same(twice.velocity, once.velocity));
    }
  }
}

// The second round's streams are those of the CPU too.
TEST_F(ResidualExecutorTest, LaterRoundsOfACentralizedRunAreTheReferences) {
  for (const auto& [name, method] : method_names()) {
    SCOPED_TRACE(name);
    const LocalTask task = task_for({"", "resnet8", method});
    BatchedExecutor batched(Precision::kFloat32);
    ThreadedExecutor serial(1, reference_passes);
    const Weights found = train_centralized(task, batched, 2).global;
    const Weights expected = train_centralized(task, serial, 2).global;
    EXPECT_LT(difference(task.network, found, expected, start(task.network), true), 2e-2);
  }
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(ResidualExecutorCaseTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
TEST(ResidualExecutorTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
