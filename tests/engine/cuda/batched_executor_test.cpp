#ifdef FEDSMOOTH_CUDA

#include "fedsmooth/engine/cuda/batched_executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fedsmooth/data/sources.h"
#include "fedsmooth/engine/cuda/kernels/wave/batched_steps.h"
#include "fedsmooth/engine/reference/reference_passes.h"
#include "tests/engine/cuda/batched_tasks.h"
#include "tests/engine/cuda/gpu.h"

namespace fedsmooth {
namespace {

using BatchedExecutorTest = GpuTest;

struct Case {
  std::string name, network;
  Method method;
  Estimator estimator = Estimator::kStochastic;
  int64_t passes = 1;
  double mu = 0;
  ExampleSource examples = ExampleSource::kNoise;
  double decay = 1;
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
    {"MaximaOfMaxima", "pools", Method::kSmoothAdv},
    {"FallingRate", "small", Method::kSmoothAdv, Estimator::kStochastic, 2, 0.0,
     ExampleSource::kNoise, 0.1},
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
  task.local.decay = c.decay;
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
  const Weights a = found.sum.average(global, parameters(task.network)),
                b = expected.sum.average(global, parameters(task.network));
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
  EXPECT_LT(difference(a.sum.average(global, parameters(task.network)),
                       b.sum.average(global, parameters(task.network)), global),
            0.35);
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
    task.local.decay *= i == 0 && task.local.decay < 1 ? 0.5 : 1;
    rounds.push_back({task, initial_weights(task.network, Key{5 + static_cast<uint64_t>(i)}),
                      std::vector<int64_t>{1, 9, 1, 4}[i], 3 * i});
  }
  return rounds;
}

void expect_same_round(const RoundResult& a, const RoundResult& b, const Round& round) {
  const auto average = [&](const RoundResult& one) {
    return one.sum.average(round.global, parameters(round.task.network));
  };
  EXPECT_EQ(difference(average(a), average(b), round.global), 0);
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
        expect_same_round(found[i], expected[i], rounds[i]);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, BatchedExecutorCaseTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

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
  EXPECT_EQ(result.dropped, 3);
  EXPECT_EQ(result.sum.kept_share(), 0);
}

TEST_F(BatchedExecutorTest, ADivergingRoundLeavesTheOthersInItsWaveAlone) {
  std::vector<OwnRound> mixed =
      mixed_rounds(task_for("small", Method::kSmoothAdv, Estimator::kStochastic));
  mixed[1].task.local.learning_rate = 1e6;
  BatchedExecutor executor, alone;
  const std::vector<RoundResult> found =
      executor.run({mixed[0].round(), mixed[1].round(), mixed[2].round()});
  EXPECT_EQ(found[1].dropped, 9);
  for (const size_t i : {0, 2}) {
    expect_same_round(found[i], run_round(alone, mixed[i].round()), mixed[i].round());
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
    expect_same_round(found[i], run_round(alone, rounds[i]), rounds[i]);
  }
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(BatchedExecutorCaseTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
TEST(BatchedExecutorTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
