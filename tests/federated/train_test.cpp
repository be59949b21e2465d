#include "fedsmooth/federated/train.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/engine/threaded_executor.h"
#include "tests/arrays.h"
#include "tests/federated/small_training.h"

namespace fedsmooth {
namespace {

Weights train_with(Executor& executor, const LocalTask& task, TrainOptions options,
                   const Partition& p) {
  ServerState state = start();
  train({task, options, p, state, [](const auto&, const auto&) { return true; }}, executor);
  return state.global;
}

const TrainOptions kTwoRounds = {.rounds = 2, .clients_per_round = 5};

TEST(TrainTest, ResultsDoNotDependOnThreads) {
  for (const Method method :
       {Method::kStandard, Method::kAdversarial, Method::kGaussian, Method::kSmoothAdv}) {
    const LocalTask task = small_task(method);
    const Partition p = partition(PartitionKind::kMajorClass);
    SerialExecutor serial(reference_passes);
    const Weights expected = train_with(serial, task, kTwoRounds, p);
    ThreadedExecutor threaded(3, reference_passes);
    expect_same(train_with(threaded, task, kTwoRounds, p), expected);
  }
}

// Different roundings: 30 steps of some ten thousand operations each, every one within 2^-24,
// moved the weights, which moved by hundredths, by 2e-6. Without noise the flat parts of an image
// tie in pooling windows, and rounding decides where a gradient goes: 4e-4 on a CPU with AVX2.
TEST(TrainTest, FastPassesTrainLikeTheReference) {
  for (const Method method :
       {Method::kStandard, Method::kAdversarial, Method::kGaussian, Method::kSmoothAdv}) {
    const LocalTask task = small_task(method);
    const Partition p = partition(PartitionKind::kMajorClass);
    SerialExecutor serial(reference_passes);
    ThreadedExecutor one(1), three(3);
    const Weights expected = train_with(serial, task, kTwoRounds, p);
    const Weights ours = train_with(one, task, kTwoRounds, p), begin = start().global;
    const double tolerance = method == Method::kAdversarial ? 2e-3 : 2e-5;
    expect_same(train_with(three, task, kTwoRounds, p), ours);
    for (size_t i = 0; i < ours.size(); ++i) {
      EXPECT_LT(difference(ours[i], expected[i]), tolerance) << i;
      EXPECT_GT(difference(ours[i], begin[i]), 1e-3) << i;
    }
  }
}

TEST(TrainTest, ResultsDoNotDependOnTheOrderOfTheCohort) {
  const LocalTask task = small_task(Method::kGaussian);
  const Partition p = partition(PartitionKind::kIid);
  Cohort cohort = sample_cohort(p, 4, 0, 0), reversed = cohort;
  std::reverse(reversed.clients.begin(), reversed.clients.end());
  std::reverse(reversed.images.begin(), reversed.images.end());
  SerialExecutor executor(reference_passes);
  const Weights global = start().global;
  expect_same(
      run_round(executor, {task, global, cohort, 0}).sum.average(global, parameters(task.network)),
      run_round(executor, {task, global, reversed, 0})
          .sum.average(global, parameters(task.network)));
}

TEST(TrainTest, MethodsAndEstimatorsDiffer) {
  SerialExecutor executor(reference_passes);
  const Partition p = partition(PartitionKind::kIid);
  std::vector<Weights> results;
  for (const Method method :
       {Method::kStandard, Method::kAdversarial, Method::kGaussian, Method::kSmoothAdv}) {
    results.push_back(train_with(executor, small_task(method), kTwoRounds, p));
  }
  LocalTask one_point = small_task(Method::kSmoothAdv);
  one_point.attack.estimator = Estimator::kOnePoint;
  results.push_back(train_with(executor, one_point, kTwoRounds, p));
  for (size_t i = 0; i < results.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(same_bits(results[i][0], results[j][0])) << i << j;
  }
}

TEST(TrainTest, CohortsAreDrawnWithoutReplacement) {
  const Partition p = partition(PartitionKind::kIid);
  std::vector<int> times(12, 0);
  for (int64_t t = 0; t < 600; ++t) {
    const Cohort cohort = sample_cohort(p, 3, 0, t);
    EXPECT_EQ(std::set<int64_t>(cohort.clients.begin(), cohort.clients.end()).size(), 3U);
    EXPECT_EQ(cohort.total, 120);
    for (const int64_t k : cohort.clients) ++times[k];
  }
  // Each client 150 times on average, standard deviation sqrt(600 / 4 * 3 / 4) = 10.6.
  for (const int count : times) EXPECT_NEAR(count, 150, 5 * 10.6);
}

TEST(TrainTest, ADivergingRunEndsInAMessage) {
  LocalTask task = small_task(Method::kStandard);
  task.local.learning_rate = 1e6;
  SerialExecutor executor(reference_passes);
  try {
    train_with(executor, task, {.rounds = 20, .clients_per_round = 2},
               partition(PartitionKind::kIid));
    FAIL() << "it did not diverge";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("learning_rate"), std::string::npos);
  }
}

TEST(TrainTest, SchedulesAndWarmUpMoveWithTheRound) {
  LocalTask task = small_task(Method::kSmoothAdv);
  task.attack.epsilon = 1.0;
  task.attack.warmup_rounds = 4;
  TrainOptions o{.rounds = 100, .schedule = Schedule::kStep};
  EXPECT_DOUBLE_EQ(task_in_round(task, o, 12, 0).attack.epsilon, 0.25);
  EXPECT_DOUBLE_EQ(task_in_round(task, o, 12, 3).attack.epsilon, 1.0);
  EXPECT_DOUBLE_EQ(task_in_round(task, o, 12, 49).local.learning_rate, 0.05);
  EXPECT_DOUBLE_EQ(task_in_round(task, o, 12, 50).local.learning_rate, 0.005);
  EXPECT_DOUBLE_EQ(task_in_round(task, o, 12, 75).local.learning_rate, 0.0005);
  EXPECT_EQ(task_in_round(task, o, 12, 75).local.learning_rate, 0.05 * 0.01);  // to the bit
  o.milestones = {20, 40, 41};
  o.decay = 0.5;
  EXPECT_EQ(task_in_round(task, o, 12, 19).local.learning_rate, 0.05);
  EXPECT_EQ(task_in_round(task, o, 12, 20).local.learning_rate, 0.05 / 2);
  EXPECT_EQ(task_in_round(task, o, 12, 40).local.learning_rate, 0.05 / 4);
  EXPECT_EQ(task_in_round(task, o, 12, 99).local.learning_rate, 0.05 / 8);
  o.schedule = Schedule::kCosine;
  EXPECT_DOUBLE_EQ(task_in_round(task, o, 12, 50).local.learning_rate, 0.025);
  EXPECT_THROW(check_train_options(o, {}, partition(PartitionKind::kIid)), Error);  // milestones
}

TEST(TrainTest, ACohortLargerThanTheClientsIsRefused) {
  EXPECT_THROW(check_train_options({.clients_per_round = 13}, {}, partition(PartitionKind::kIid)),
               Error);
}

TEST(TrainTest, AnAttackByPointsNeedsNoise) {
  const TrainOptions adversarial = {.method = Method::kAdversarial, .clients_per_round = 3};
  const Partition p = partition(PartitionKind::kIid);
  check_train_options(adversarial, {.estimator = Estimator::kStochastic}, p);
  EXPECT_THROW(check_train_options(adversarial, {.estimator = Estimator::kOnePoint}, p), Error);
}

// An executor that adds up and says nothing about what it supports.
class SumOnly : public Executor {
 public:
  std::vector<RoundResult> run(const std::vector<Round>&) override { throw Bug("was run"); }
};

TEST(TrainTest, UnsupportedTasksAreRefusedBeforeTheFirstRound) {
  SumOnly executor;
  TrainOptions options = kTwoRounds;
  options.aggregate.kind = "median";
  EXPECT_THROW(
      train_with(executor, small_task(Method::kStandard), options, partition(PartitionKind::kIid)),
      Error);
  EXPECT_THROW(train_with(executor, small_task(Method::kStandard), kTwoRounds,
                          partition(PartitionKind::kIid)),
               Bug);
}

}  // namespace
}  // namespace fedsmooth
