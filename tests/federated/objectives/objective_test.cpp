#include "fedsmooth/federated/objectives/objective.h"

#include <gtest/gtest.h>

#include "fedsmooth/base/error.h"
#include "fedsmooth/engine/threaded_executor.h"
#include "fedsmooth/federated/objectives/smooth_mix.h"
#include "tests/arrays.h"
#include "tests/federated/small_training.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

std::string refusal_of(Method method, const ObjectiveOptions& options) {
  try {
    check_objective(method, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

Update train_client(const LocalTask& task, const MakePasses& make = reference_passes) {
  return local_train(task, *make(task.network), start().global, 3, images_of_client_3(), 2);
}

LocalTask consistency_task(std::optional<double> lambda, std::optional<double> eta) {
  LocalTask task = small_task(Method::kConsistency);
  task.objective.lambda = lambda;
  task.objective.eta = eta;
  return task;
}

// With all that any objective needs, in a round in which all of it is used.
LocalTask late_task(Method method) {
  LocalTask task = small_task(method);
  task.smoothing.sigma = 0.5;
  task.progress = 0.5;
  task.local.steps = 2;
  task.teacher = Array::full({shapes().size(), 10}, 0.1f);
  task.image_weights = Array::full({shapes().size()}, 1.0f);
  return task;
}

TEST(ObjectiveTest, RowsStandInTheOrderOfTheirMethods) {
  const auto names = method_names();
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(names[i].second), i);
    EXPECT_EQ(objective_of(names[i].second).name, names[i].first);
    EXPECT_NE(objective_of(names[i].second).score, nullptr);
  }
  EXPECT_EQ(objective_of(Method::kGaussian).name, "gaussian");
  EXPECT_EQ(objective_of(Method::kConsistency).name, "consistency");
}

TEST(ObjectiveTest, WeightsDefaultToThePublishedOnes) {
  LocalTask task = small_task(Method::kConsistency);
  for (const auto& [sigma, lambda] :
       {std::pair(0.12, 20.0), {0.25, 20.0}, {0.5, 10.0}, {1.0, 10.0}}) {
    task.smoothing.sigma = sigma;
    EXPECT_EQ(score_weights(task).lambda, lambda) << sigma;
    EXPECT_EQ(score_weights(task).eta, 0.5) << sigma;
  }
  task.objective.examples = ExampleSource::kSmoothAdv;
  EXPECT_EQ(score_weights(task).lambda, 1.0);
  task.objective.lambda = 0.0;
  EXPECT_EQ(score_weights(task).lambda, 0.0);
  EXPECT_EQ(score_weights(task).eta, 0.5);
}

TEST(ObjectiveTest, SchedulesAreFractionsOfTheRounds) {
  LocalTask task = small_task(Method::kMacer);
  task.smoothing.sigma = 1;
  EXPECT_EQ(score_weights(task).lambda, 0);
  task.progress = 0.34;
  EXPECT_EQ(score_weights(task).lambda, 12);
  EXPECT_EQ(score_weights(task).sigma, 1);
  LocalTask mix = small_task(Method::kSmoothMix);
  EXPECT_NEAR(score_weights(mix).lambda, 0.5, 1e-12);
  EXPECT_EQ(mix_first_step(mix), 0);
  mix.smoothing.sigma = 0.5;
  EXPECT_NEAR(mix_first_step(mix), 0.1, 1e-12);
  mix.progress = 0.5;
  EXPECT_NEAR(score_weights(mix).lambda, 5, 1e-12);
  EXPECT_NEAR(mix_first_step(mix), 1, 1e-12);
}

TEST(ObjectiveTest, OptionsThatWouldBeIgnoredAreRefused) {
  EXPECT_EQ(refusal_of(Method::kGaussian, {}), "");
  EXPECT_EQ(refusal_of(Method::kConsistency, {.lambda = 1.0, .eta = 0.0}), "");
  EXPECT_EQ(refusal_of(Method::kGaussian, {.lambda = 1.0}),
            "objective.lambda: train.method=\"gaussian\" does not use it; leave it out");
  EXPECT_NE(refusal_of(Method::kSmoothAdv, {.eta = 0.0}), "");
  EXPECT_NE(refusal_of(Method::kStability, {.eta = 0.0}), "");
  EXPECT_NE(refusal_of(Method::kConsistency, {.steps = 3}), "");
  EXPECT_NE(refusal_of(Method::kGaussian, {.examples = ExampleSource::kSmoothAdv}), "");
}

TEST(ObjectiveTest, ConsistencyWithoutItsWeightsTrainsGaussianToTheBit) {
  for (const MakePasses& make : {MakePasses(reference_passes), MakePasses(fastest_passes)}) {
    const Update gaussian = train_client(small_task(Method::kGaussian), make);
    const Update same = train_client(consistency_task(0, 0), make);
    expect_same(same.weights, gaussian.weights);
    EXPECT_EQ(same.telemetry.loss, gaussian.telemetry.loss);
    const Update other = train_client(consistency_task({}, {}), make);
    EXPECT_GT(difference(other.weights.back(), gaussian.weights.back()), 1e-5);
  }
}

TEST(ObjectiveTest, ConsistencyOnSmoothAdvsExamplesWithoutItsWeightsIsSmoothAdv) {
  LocalTask task = consistency_task(0, 0);
  task.objective.examples = ExampleSource::kSmoothAdv;
  const Update found = train_client(task), expected = train_client(small_task(Method::kSmoothAdv));
  expect_same(found.weights, expected.weights);
  EXPECT_EQ(found.telemetry.attacked, expected.telemetry.attacked);
  EXPECT_EQ(found.telemetry.drop, expected.telemetry.drop);
}

// A near-tie of a maximum that is decided otherwise moves single weights further.
TEST(ObjectiveTest, LanesTrainLikeTheReference) {
  for (const auto& [name, method] : method_names()) {
    const LocalTask task = late_task(method);
    const Update a = train_client(task, fastest_passes), b = train_client(task);
    for (size_t i = 0; i < a.weights.size(); ++i) {
      EXPECT_LT(difference(a.weights[i], b.weights[i]), 2e-3) << name << ", tensor " << i;
    }
    EXPECT_NEAR(a.telemetry.mean_loss(), b.telemetry.mean_loss(), 1e-4) << name;
  }
}

TEST(ObjectiveTest, SunIsGaussianAtFirst) {
  expect_same(train_client(small_task(Method::kSun)).weights,
              train_client(small_task(Method::kGaussian)).weights);
}

TEST(ObjectiveTest, ARunWithoutTheTablesOfItsObjectiveIsRefused) {
  ServerState state = start();
  SerialExecutor executor(reference_passes);
  const OnRound any = [](const auto&, const auto&) { return true; };
  const Partition p = partition(PartitionKind::kIid);
  EXPECT_EQ(refusal([&] {
              train(
                  {small_task(Method::kSun), {.rounds = 3, .clients_per_round = 2}, p, state, any},
                  executor);
            }),
            "train.method=\"sun\": needs Training::image_weights");
}

TEST(ObjectiveTest, AResumedRunIsTheSameToTheBit) {
  for (const auto& [name, method] : method_names()) {
    LocalTask task = late_task(method);
    task.local.steps = 1;
    const auto train_on = [&](ServerState state, int64_t most) {
      ThreadedExecutor executor(2);
      train({task,
             {.rounds = 3, .clients_per_round = 2},
             partition(PartitionKind::kIid),
             state,
             [&](const auto&, const auto&) { return --most > 0; }},
            executor);
      return state;
    };
    const ServerState whole = train_on(start(), 3);
    const ServerState cut = train_on(train_on(start(), 1), 3);
    SCOPED_TRACE(name);
    expect_same(cut.global, whole.global);
  }
}

// The published costs, in passes forwards of an image.
TEST(ObjectiveTest, CountsThePassesOfAStep) {
  const auto passes = [](Method method, int64_t m, double progress = 0.99) {
    LocalTask task = small_task(method);
    task.smoothing.m = m;
    task.progress = progress;
    return passes_of(task);
  };
  EXPECT_EQ(passes(Method::kStandard, 4), 3);
  EXPECT_EQ(passes(Method::kAdversarial, 4), 7);  // two steps
  EXPECT_EQ(passes(Method::kGaussian, 4), 12);
  EXPECT_EQ(passes(Method::kSmoothAdv, 4), 28);
  EXPECT_EQ(passes(Method::kStability, 1), 6);
  EXPECT_EQ(passes(Method::kConsistency, 2), 6);
  EXPECT_EQ(passes(Method::kMacer, 16), 48);
  EXPECT_EQ(passes(Method::kSmoothMix, 2), 28);
  EXPECT_EQ(passes(Method::kCatRs, 4), 56);
  EXPECT_DOUBLE_EQ(0.4 * passes(Method::kSun, 4, 0) + 0.6 * passes(Method::kSun, 4), 26.4);
}

TEST(ObjectiveTest, TelemetryHasTheTermsOfTheLoss) {
  const Telemetry t = train_client(consistency_task(20, 0.5)).telemetry;
  EXPECT_GT(t.mean_robust(), 0);
  // The entropy of nearly uniform answers to ten classes, times eta.
  EXPECT_NEAR(t.mean_entropy(), 0.5 * std::log(10.0), 0.2);
  EXPECT_NEAR(t.mean_loss() - t.mean_robust() - t.mean_entropy(), std::log(10.0), 0.3);
  const Telemetry plain = train_client(small_task(Method::kGaussian)).telemetry;
  EXPECT_EQ(plain.mean_robust(), 0);
}

}  // namespace
}  // namespace fedsmooth
