#ifdef FEDSMOOTH_CUDA

#include "fedsmooth/engine/cuda/batched_executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "fedsmooth/data/sources.h"
#include "fedsmooth/engine/cuda/kernels/batched_steps.h"
#include "fedsmooth/engine/reference/reference_passes.h"
#include "fedsmooth/federated/reductions.h"
#include "fedsmooth/model/architectures.h"
#include "tests/engine/cuda/gpu.h"
#include "tests/engine/cuda/rounds.h"

namespace fedsmooth {
namespace {

using BatchedExecutorTest = GpuTest;

// Odd sizes, a pool whose windows overlap, layers without a bias.
Network odd_network() {
  using Kind = Layer::Kind;
  Layer normalize{Kind::kNormalize};
  normalize.mean = {0.5, 0.5, 0.5};
  normalize.sd = {0.5, 0.4, 0.3};
  Layer first{Kind::kConv, "a", 7, 5, 3, 1}, pool{Kind::kMaxPool, "", 0, 3, 2};
  Layer second{Kind::kConv, "b", 70, 3, 2, 2}, last{Kind::kLinear, "c", 10};
  first.bias = last.bias = false;
  return {"odd", {3, 32, 32}, {normalize, first, {Kind::kRelu}, pool, second, pool, last}};
}

const Network& network_called(const std::string& name) {
  static std::map<std::string, Network> networks{{"odd", odd_network()}};
  if (networks.count(name) == 0) {
    ModelOptions options;
    options.name = name;
    set_default_normalization(options, "shapes", 3);
    networks[name] = build_network(options, {3, 32, 32}, 10);
  }
  return networks[name];
}

LocalTask task_for(const std::string& network, Method method, Estimator estimator) {
  LocalTask task{network_called(network), shapes(), /*augment=*/true, method};
  task.local = {.steps = 2, .batch = 9, .learning_rate = 0.05};
  task.smoothing.m = 3;
  task.attack.estimator = estimator;
  return task;
}

Weights round_of(Executor& executor, const LocalTask& task, int64_t clients) {
  const Weights global = start(task.network);
  return run_round(executor, {task, global, cohort_of(clients), 4}).sum.average(global);
}

double distance(const Array& a, const Array& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.count(); ++i) {
    const double apart = static_cast<double>(a.floats()[i]) - b.floats()[i];
    sum += apart * apart;
  }
  return std::sqrt(sum);
}

// The difference over the movement, for the tensor that differs most.
double difference(const Weights& a, const Weights& b, const Weights& from) {
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double off = distance(a[i], b[i]) / distance(b[i], from[i]);
    if (std::isnan(off)) return off;
    worst = std::max(worst, off);
  }
  return worst;
}

struct Case {
  std::string name, network;
  Method method;
  Estimator estimator = Estimator::kStochastic;
  int64_t passes = 1;
  double mu = 0;
  ExampleSource examples = ExampleSource::kNoise;
};

const std::vector<Case> kCases = {
    {"Standard", "small", Method::kStandard},
    {"Adversarial", "small", Method::kAdversarial},
    {"Gaussian", "small", Method::kGaussian},
    {"Stochastic", "small", Method::kSmoothAdv},
    {"OnePoint", "small", Method::kSmoothAdv, Estimator::kOnePoint},
    {"TwoPoint", "small", Method::kSmoothAdv, Estimator::kTwoPoint},
    {"Alexnet", "alexnet", Method::kSmoothAdv},
    {"AlexnetGaussian", "alexnet", Method::kGaussian},
    {"Odd", "odd", Method::kSmoothAdv},
    {"ThreePasses", "small", Method::kSmoothAdv, Estimator::kStochastic, 3},
    {"FedProx", "odd", Method::kGaussian, Estimator::kStochastic, 2, 3.0},
    {"AlexnetFedProx", "alexnet", Method::kGaussian, Estimator::kStochastic, 1, 3.0},
    {"Consistency", "small", Method::kConsistency},
    {"ConsistencyOfAttacked", "small", Method::kConsistency, Estimator::kStochastic, 1, 0.0,
     ExampleSource::kSmoothAdv},
    {"AlexnetConsistency", "alexnet", Method::kConsistency},
    {"Stability", "small", Method::kStability},
    {"Macer", "small", Method::kMacer},
    {"SmoothMix", "small", Method::kSmoothMix},
    {"AlexnetSmoothMix", "alexnet", Method::kSmoothMix},
    {"CatRs", "small", Method::kCatRs},
    {"CatRsTwoPasses", "odd", Method::kCatRs, Estimator::kStochastic, 2},
    {"AlexnetCatRs", "alexnet", Method::kCatRs},
    {"Sun", "small", Method::kSun},
    {"AlexnetSun", "alexnet", Method::kSun},
};

LocalTask task_of(const Case& c) {
  LocalTask task = task_for(c.network, c.method, c.estimator);
  task.local.passes = c.passes;
  task.local.mu = c.mu;
  task.objective.examples = c.examples;
  if (c.method == Method::kCatRs || c.method == Method::kSun) add_tables(task);
  return task;
}

class BatchedExecutorCaseTest : public BatchedExecutorTest,
                                public testing::WithParamInterface<Case> {};

// Two steps in float32. Sums of some thousand terms in another order differ by 1e-6 of their size;
// a near-tie of a maximum or a sign that is decided otherwise moves single weights further: by up
// to 2% of the largest movement in AlexNet.
TEST_P(BatchedExecutorCaseTest, TrainsLikeTheSerialExecutor) {
  const LocalTask task = task_of(GetParam());
  SerialExecutor serial(reference_passes);
  BatchedExecutor batched(Precision::kFloat32);
  const Weights global = start(task.network);
  const RoundResult expected = run_round(serial, {task, global, cohort_of(5), 4});
  const RoundResult found = run_round(batched, {task, global, cohort_of(5), 4});
  const Weights a = found.sum.average(global), b = expected.sum.average(global);
  EXPECT_LT(difference(a, b, global), GetParam().network == "alexnet" ? 5e-2 : 1e-4);
  EXPECT_EQ(found.sum.kept_share(), expected.sum.kept_share());
  EXPECT_EQ(found.telemetry.steps, expected.telemetry.steps);
  EXPECT_NEAR(found.telemetry.mean_loss(), expected.telemetry.mean_loss(), 1e-5);
  EXPECT_NEAR(found.telemetry.mean_robust(), expected.telemetry.mean_robust(), 1e-5);
  EXPECT_NEAR(found.telemetry.mean_entropy(), expected.telemetry.mean_entropy(), 1e-5);
  EXPECT_EQ(found.telemetry.attacked, expected.telemetry.attacked);
  EXPECT_NEAR(found.telemetry.mean_perturbation(), expected.telemetry.mean_perturbation(), 1e-4);
  EXPECT_NEAR(found.telemetry.mean_drop(), expected.telemetry.mean_drop(), 1e-5);
}

// bfloat16 keeps 8 bits. In an untrained network the pixels of a window often agree to as many, and
// a maximum that goes to another of them sends its gradient elsewhere: up to a fifth of a movement
// was measured.
TEST_P(BatchedExecutorCaseTest, Bfloat16StaysNear) {
  const LocalTask task = task_of(GetParam());
  BatchedExecutor half(Precision::kBfloat16), full(Precision::kFloat32);
  const Weights global = start(task.network);
  const RoundResult a = run_round(half, {task, global, cohort_of(5), 4});
  const RoundResult b = run_round(full, {task, global, cohort_of(5), 4});
  const double sharpness = task.method == Method::kMacer ? 16 : 1;  // of the logits that it scores
  EXPECT_NEAR(a.telemetry.mean_loss(), b.telemetry.mean_loss(), 2e-3 * sharpness);
  EXPECT_LT(difference(a.sum.average(global), b.sum.average(global), global), 0.35);
}

TEST_P(BatchedExecutorCaseTest, WavesChangeNothing) {
  const LocalTask task = task_of(GetParam());
  for (const Precision precision : {Precision::kBfloat16, Precision::kFloat32}) {
    BatchedExecutor whole(precision);
    const Weights expected = round_of(whole, task, 9);
    EXPECT_EQ(difference(round_of(whole, task, 9), expected, start(task.network)), 0);
    for (const int64_t wave : {1, 2, 7}) {
      BatchedExecutor waves(precision, wave);
      EXPECT_EQ(difference(round_of(waves, task, 9), expected, start(task.network)), 0) << wave;
    }
  }
}

// A round of a run of its own: sigma, epsilon, learning rate, seed and weights.
struct OwnRound {
  LocalTask task;
  Weights global;
  int64_t clients, t;

  Round round() const { return {task, global, cohort_of(clients), t}; }
};

std::vector<OwnRound> mixed_rounds(LocalTask task) {
  std::vector<OwnRound> rounds;
  for (const int64_t i : {0, 1, 2, 3}) {
    task.seed = 10 + i / 2;
    task.smoothing.sigma = 0.12 * static_cast<double>(i + 1);
    task.attack.epsilon = 1.0 / static_cast<double>(i + 1);
    task.local.learning_rate = 0.02 * static_cast<double>(i + 1);
    task.local.momentum = i == 1 ? 0.5 : 0.9;
    task.local.weight_decay = i == 2 ? 1e-2 : 1e-4;
    task.local.mu *= i == 3 ? 0.5 : 1;
    rounds.push_back({task, initial_weights(task.network, Key{5 + static_cast<uint64_t>(i)}),
                      std::vector<int64_t>{1, 9, 1, 4}[i], 3 * i});
  }
  return rounds;
}

void expect_same_round(const RoundResult& a, const RoundResult& b, const Weights& global) {
  EXPECT_EQ(difference(a.sum.average(global), b.sum.average(global), global), 0);
  EXPECT_EQ(a.sum.kept_share(), b.sum.kept_share());
  EXPECT_EQ(a.telemetry.steps, b.telemetry.steps);
  EXPECT_EQ(a.telemetry.loss, b.telemetry.loss);
  EXPECT_EQ(a.telemetry.perturbation, b.telemetry.perturbation);
  EXPECT_EQ(a.telemetry.drop, b.telemetry.drop);
}

// Waves of 7 begin and end within rounds, those of 1 never hold two.
TEST_P(BatchedExecutorCaseTest, RoundsThatShareWavesDoNotTouchEachOther) {
  const std::vector<OwnRound> mixed = mixed_rounds(task_of(GetParam()));
  std::vector<Round> rounds;
  for (const OwnRound& one : mixed) rounds.push_back(one.round());
  for (const Precision precision : {Precision::kBfloat16, Precision::kFloat32}) {
    BatchedExecutor alone(precision);
    std::vector<RoundResult> expected;
    for (const Round& round : rounds) expected.push_back(run_round(alone, round));
    for (const int64_t wave : {0, 1, 7}) {
      BatchedExecutor executor(precision, wave);
      const std::vector<RoundResult> found = executor.run(rounds);
      for (size_t i = 0; i < rounds.size(); ++i) {
        SCOPED_TRACE(testing::Message() << "wave " << wave << ", round " << i);
        expect_same_round(found[i], expected[i], rounds[i].global);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, BatchedExecutorCaseTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

// Two steps, without momentum: they part at the second one, by rate mu (w_1 - w_0), which the
// weights' own rounding, 2^-25, hides only where it is small.
TEST_F(BatchedExecutorTest, FedProxPullsToTheWeightsOfTheRound) {
  for (const Precision precision : {Precision::kBfloat16, Precision::kFloat32}) {
    LocalTask task = task_for("alexnet", Method::kGaussian, Estimator::kStochastic);
    task.local.momentum = 0;
    const auto train = [&](int64_t steps, double mu) {
      task.local.steps = steps;
      task.local.mu = mu;
      BatchedExecutor executor(precision);
      return round_of(executor, task, 1);
    };
    const double mu = 3, rate = task.local.learning_rate;
    const Weights w0 = start(task.network), w1 = train(1, mu);
    EXPECT_EQ(difference(w1, train(1, 0), w0), 0);
    const Weights plain = train(2, 0), pulled = train(2, mu);
    for (size_t i = 0; i < w0.size(); ++i) {
      for (int64_t j = 0; j < w0[i].count(); ++j) {
        const double pull = rate * mu * (double{w1[i].floats()[j]} - w0[i].floats()[j]);
        ASSERT_NEAR(pulled[i].floats()[j], plain[i].floats()[j] - pull, 2e-7) << i << " " << j;
      }
    }
  }
}

// Each client's weights, in whatever waves: their sum is the sum, and a median has one value.
TEST_F(BatchedExecutorTest, TheWeightsOfEachClientAddUpToTheSum) {
  LocalTask task = task_for("odd", Method::kSmoothAdv, Estimator::kStochastic);
  const Weights global = start(task.network);
  const Cohort cohort = cohort_of(9);
  BatchedExecutor whole;
  const RoundResult summed = run_round(whole, {task, global, cohort, 4});
  const RoundResult all = run_round(whole, {task, global, cohort, 4, 0, Gather::kEach});
  for (const int64_t wave : {0, 1, 2, 7}) {
    BatchedExecutor executor(Precision::kBfloat16, wave);
    const RoundResult found = run_round(executor, {task, global, cohort, 4, 0, Gather::kEach});
    ASSERT_EQ(found.each.size(), 9U);
    EXPECT_EQ(found.telemetry.loss, summed.telemetry.loss);
    FixedPointSum sum;
    for (const ClientWeights& one : found.each) {
      const auto at = std::find(cohort.clients.begin(), cohort.clients.end(), one.client);
      ASSERT_TRUE(sum.add(one.weights, cohort.share(at - cohort.clients.begin())));
    }
    EXPECT_EQ(difference(sum.average(global), summed.sum.average(global), global), 0);
    for (const std::string kind : {"median", "trimmed-mean", "krum", "geometric-median"}) {
      EXPECT_EQ(difference(reduce({kind}, task.network, found, global),
                           reduce({kind}, task.network, all, global), global),
                0);
    }
  }
}

TEST_F(BatchedExecutorTest, ABrokenClientIsNotAmongThoseThatAreKept) {
  LocalTask task = task_for("small", Method::kGaussian, Estimator::kStochastic);
  task.local.learning_rate = 1e6;
  const Weights global = start(task.network);
  BatchedExecutor executor;
  const RoundResult result = run_round(executor, {task, global, cohort_of(3), 0, 0, Gather::kEach});
  EXPECT_EQ(result.sum.dropped(), 3);
  EXPECT_TRUE(result.nothing_kept());
}

TEST_F(BatchedExecutorTest, ConsistencyWithoutItsWeightsTrainsGaussianToTheBit) {
  LocalTask task = task_for("alexnet", Method::kConsistency, Estimator::kStochastic);
  task.objective.lambda = task.objective.eta = 0.0;
  const LocalTask plain = task_for("alexnet", Method::kGaussian, Estimator::kStochastic);
  for (const Precision precision : {Precision::kBfloat16, Precision::kFloat32}) {
    BatchedExecutor a(precision), b(precision);
    EXPECT_EQ(difference(round_of(a, task, 3), round_of(b, plain, 3), start(plain.network)), 0);
  }
}

TEST_F(BatchedExecutorTest, SunIsGaussianAtFirstToTheBit) {
  const LocalTask sun = task_for("small", Method::kSun, Estimator::kStochastic);
  const LocalTask gaussian = task_for("small", Method::kGaussian, Estimator::kStochastic);
  BatchedExecutor a, b;
  EXPECT_EQ(difference(round_of(a, sun, 3), round_of(b, gaussian, 3), start(sun.network)), 0);
}

// As if the bad client's images had other labels: the same bits, calibrated or not.
TEST_F(BatchedExecutorTest, AClientThatFlipsLabelsTrainsOnOtherOnes) {
  Dataset other = shapes();
  for (int64_t& y : other.labels) y = 9 - y;
  for (const bool calibrate : {false, true}) {
    LocalTask task = task_for("small", Method::kSmoothAdv, Estimator::kStochastic);
    task.local.calibrate = calibrate;
    LocalTask flipped{task.network, other, task.augment, task.method};
    flipped.local = task.local;
    flipped.smoothing = task.smoothing;
    const Weights global = start(task.network);
    BatchedExecutor executor, honest;
    const auto each = [&](BatchedExecutor& by, const LocalTask& what) {
      RoundResult result = run_round(by, {what, global, cohort_of(3), 0, 0, Gather::kEach});
      std::sort(result.each.begin(), result.each.end(),
                [](const auto& a, const auto& b) { return a.client < b.client; });
      return result.each;
    };
    const auto plain = each(executor, task), bad = each(honest, flipped);
    task.flippers = {plain[1].client};
    const auto mixed = each(executor, task);
    for (const size_t i : {0, 1, 2}) {
      const ClientWeights& expected = i == 1 ? bad[i] : plain[i];
      EXPECT_EQ(difference(mixed[i].weights, expected.weights, global), 0) << i;
      EXPECT_EQ(mixed[i].loss, expected.loss) << i;
    }
  }
}

// The losses by which SFAT weighs clients do not depend on the waves, and are the reference's.
TEST_F(BatchedExecutorTest, SfatWeighsTheSameClientsInAnyWaves) {
  const LocalTask task = task_for("small", Method::kGaussian, Estimator::kStochastic);
  const Weights global = start(task.network);
  const Round round{task, global, cohort_of(10), 4, 0, Gather::kEach};
  BatchedExecutor whole;
  const AggregateOptions sfat{.sfat = 1.4};
  const RoundResult all = run_round(whole, round);
  const Weights expected = reduce(sfat, task.network, all, global);
  EXPECT_NE(difference(reduce({}, task.network, all, global), expected, global), 0);
  for (const int64_t wave : {1, 4}) {
    BatchedExecutor executor(Precision::kBfloat16, wave);
    const RoundResult found = run_round(executor, round);
    EXPECT_EQ(difference(reduce(sfat, task.network, found, global), expected, global), 0);
  }
  SerialExecutor serial(reference_passes);
  for (const ClientWeights& one : run_round(serial, round).each) {
    const auto same = std::find_if(all.each.begin(), all.each.end(),
                                   [&](const auto& other) { return other.client == one.client; });
    ASSERT_NE(same, all.each.end());
    EXPECT_NEAR(same->loss, one.loss, 2e-3);
  }
}

TEST_F(BatchedExecutorTest, CalibratesLikeTheSerialExecutor) {
  LocalTask task = task_for("small", Method::kSmoothAdv, Estimator::kStochastic);
  task.local.calibrate = true;
  SerialExecutor serial(reference_passes);
  BatchedExecutor batched(Precision::kFloat32);
  const Weights global = start(task.network);
  EXPECT_LT(difference(round_of(batched, task, 3), round_of(serial, task, 3), global), 1e-4);
}

TEST_F(BatchedExecutorTest, DrawsTheNormalsOfTheCpu) {
  WaveShape shape{2, 3, 2, 64, 3, 5, 7, 105};
  std::vector<ClientSettings> settings(2);
  settings[0] = {make_key(1, Purpose::kTraining, 2).value, 77, 0.25f};
  settings[1] = {make_key(3, Purpose::kTraining, 2).value, 5, 1.0f};
  const DeviceArray<ClientSettings> on_device(settings);
  const DeviceArray<int> step(std::vector<int>{9});
  const DeviceArray<float> noise(int64_t{2} * 6 * 105);
  check_cuda(draw_noise(shape, on_device.data(), step.data(), noise.data(), nullptr), "draw_noise");
  const std::vector<float> found = noise.download(nullptr);
  for (int client = 0; client < 2; ++client) {
    for (uint32_t sample = 0; sample < 6; ++sample) {
      float expected[105];
      fill_normal({{settings[client].key}, 9, settings[client].client}, sample, expected, 105);
      for (int i = 0; i < 105; ++i) {
        ASSERT_EQ(found[(client * 6 + sample) * 105 + i], expected[i] * settings[client].sigma);
      }
    }
  }
}

TEST_F(BatchedExecutorTest, ADivergingClientIsDropped) {
  LocalTask task = task_for("small", Method::kGaussian, Estimator::kStochastic);
  task.local.learning_rate = 1e6;
  BatchedExecutor executor;
  const RoundResult result = run_round(executor, {task, start(task.network), cohort_of(3), 0});
  EXPECT_EQ(result.sum.dropped(), 3);
  EXPECT_EQ(result.sum.kept_share(), 0);
}

TEST_F(BatchedExecutorTest, ADivergingRoundLeavesTheOthersInItsWaveAlone) {
  std::vector<OwnRound> mixed =
      mixed_rounds(task_for("small", Method::kSmoothAdv, Estimator::kStochastic));
  mixed[1].task.local.learning_rate = 1e6;
  BatchedExecutor executor, alone;
  const std::vector<RoundResult> found =
      executor.run({mixed[0].round(), mixed[1].round(), mixed[2].round()});
  EXPECT_EQ(found[1].sum.dropped(), 9);
  for (const size_t i : {0, 2}) {
    expect_same_round(found[i], run_round(alone, mixed[i].round()), mixed[i].global);
  }
}

// Another estimator is another step, other images are other data: neither can share a wave.
TEST_F(BatchedExecutorTest, RoundsThatCannotShareAWaveRunOneAfterAnother) {
  const Dataset other = make_shapes(Split::kTrain, 600, 1);
  const LocalTask base = task_for("small", Method::kSmoothAdv, Estimator::kStochastic);
  const LocalTask elsewhere{base.network,   other,       base.augment, base.method,
                            base.smoothing, base.attack, base.local};
  const LocalTask one_point = task_for("small", Method::kSmoothAdv, Estimator::kOnePoint);
  const Weights global = start(base.network);
  const std::vector<Round> rounds = {{base, global, cohort_of(2), 0},
                                     {one_point, global, cohort_of(2), 0},
                                     {elsewhere, global, cohort_of(2), 0},
                                     {base, global, cohort_of(3), 1}};
  BatchedExecutor executor;
  const std::vector<RoundResult> found = executor.run(rounds);
  for (size_t i = 0; i < rounds.size(); ++i) {
    BatchedExecutor alone;
    expect_same_round(found[i], run_round(alone, rounds[i]), global);
  }
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(BatchedExecutorCaseTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
TEST(BatchedExecutorTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
