// What clients and servers add to a local step (FedProx, kept weights, flipped labels, SFAT,
// CalFAT), in waves.
#ifdef FEDSMOOTH_CUDA

#include <gtest/gtest.h>

#include "fedsmooth/engine/cuda/batched_executor.h"
#include "fedsmooth/engine/reference/reference_passes.h"
#include "fedsmooth/federated/reductions/reductions.h"
#include "tests/engine/cuda/batched_tasks.h"
#include "tests/engine/cuda/gpu.h"

namespace fedsmooth {
namespace {

using BatchedRulesTest = GpuTest;

// Two steps, without momentum: they part at the second one, by rate mu (w_1 - w_0), which the
// weights' own rounding, 2^-25, hides only where it is small.
TEST_F(BatchedRulesTest, FedProxPullsToTheWeightsOfTheRound) {
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
TEST_F(BatchedRulesTest, TheWeightsOfEachClientAddUpToTheSum) {
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
    const std::vector<Parameter> known = parameters(task.network);
    FixedPointSum sum;
    for (const ClientWeights& one : found.each) {
      const auto at = std::find(cohort.clients.begin(), cohort.clients.end(), one.client);
      sum.add(one.weights, known, cohort.share(at - cohort.clients.begin()));
    }
    EXPECT_EQ(difference(sum.average(global, known), summed.sum.average(global, known), global), 0);
    for (const std::string kind : {"median", "trimmed-mean", "krum", "geometric-median"}) {
      EXPECT_EQ(difference(reduce({kind}, task.network, found, global),
                           reduce({kind}, task.network, all, global), global),
                0);
    }
  }
}

TEST_F(BatchedRulesTest, ABrokenClientIsNotAmongThoseThatAreKept) {
  LocalTask task = task_for("small", Method::kGaussian, Estimator::kStochastic);
  task.local.learning_rate = 1e6;
  const Weights global = start(task.network);
  BatchedExecutor executor;
  const RoundResult result = run_round(executor, {task, global, cohort_of(3), 0, 0, Gather::kEach});
  EXPECT_EQ(result.dropped, 3);
  EXPECT_TRUE(result.nothing_kept());
}

TEST_F(BatchedRulesTest, ConsistencyWithoutItsWeightsTrainsGaussianToTheBit) {
  LocalTask task = task_for("alexnet", Method::kConsistency, Estimator::kStochastic);
  task.objective.lambda = task.objective.eta = 0.0;
  const LocalTask plain = task_for("alexnet", Method::kGaussian, Estimator::kStochastic);
  for (const Precision precision : {Precision::kBfloat16, Precision::kFloat32}) {
    BatchedExecutor a(precision), b(precision);
    EXPECT_EQ(difference(round_of(a, task, 3), round_of(b, plain, 3), start(plain.network)), 0);
  }
}

TEST_F(BatchedRulesTest, SunIsGaussianAtFirstToTheBit) {
  const LocalTask sun = task_for("small", Method::kSun, Estimator::kStochastic);
  const LocalTask gaussian = task_for("small", Method::kGaussian, Estimator::kStochastic);
  BatchedExecutor a, b;
  EXPECT_EQ(difference(round_of(a, sun, 3), round_of(b, gaussian, 3), start(sun.network)), 0);
}

// As if the bad client's images had other labels: the same bits, calibrated or not.
TEST_F(BatchedRulesTest, AClientThatFlipsLabelsTrainsOnOtherOnes) {
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
TEST_F(BatchedRulesTest, SfatWeighsTheSameClientsInAnyWaves) {
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

TEST_F(BatchedRulesTest, CalibratesLikeTheSerialExecutor) {
  LocalTask task = task_for("small", Method::kSmoothAdv, Estimator::kStochastic);
  task.local.calibrate = true;
  SerialExecutor serial(reference_passes);
  BatchedExecutor batched(Precision::kFloat32);
  const Weights global = start(task.network);
  EXPECT_LT(difference(round_of(batched, task, 3), round_of(serial, task, 3), global), 1e-4);
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(BatchedRulesTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
