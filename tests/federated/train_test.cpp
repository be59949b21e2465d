#include "fedsmooth/federated/train.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fedsmooth/base/error.h"
#include "fedsmooth/engine/threaded_executor.h"
#include "tests/federated/small_training.h"

namespace fedsmooth {
namespace {

Weights train_with(Executor& executor, const LocalTask& task, TrainOptions options,
                   const Partition& p) {
  ServerState state = start();
  train(task, options, p, executor, state, [](const auto&, const auto&) { return true; });
  return state.global;
}

const TrainOptions kTwoRounds = {.rounds = 2, .clients_per_round = 5};

// One client that holds everything is plain SGD, written out here without our classes. The
// average's fixed point keeps the bits of every weight of at least 2^-27.
TEST(TrainTest, OneClientIsPlainSgd) {
  LocalTask task = small_task(Method::kStandard);
  task.augment = false;
  task.local.batch = 600;  // the whole set, so that the order does not matter to what is drawn
  SerialExecutor executor;
  TrainOptions options{.rounds = 1, .clients_per_round = 1};
  const Weights found = train_with(executor, task, options, partition(PartitionKind::kWhole, 1));

  Weights weights = start().global, velocity;
  const Cohort cohort = sample_cohort(partition(PartitionKind::kWhole, 1), 1, 0, 0);
  ASSERT_EQ(cohort.images[0].size(), 600U);
  for (Tensor& w : weights) w.requires_grad_(true);
  for (int64_t step = 0; step < task.local.steps; ++step) {
    // The same images in another order give the same loss up to rounding.
    const Tensor x = shapes().images.to(at::kFloat).div(255);
    const Tensor loss =
        at::cross_entropy_loss(forward(small_network(), weights, x), shapes().labels);
    const auto gradients = torch::autograd::grad({loss}, weights);
    c10::NoGradGuard no_grad;
    for (size_t i = 0; i < weights.size(); ++i) {
      const Tensor g = gradients[i] + 1e-4 * weights[i];
      if (step == 0) velocity.push_back(g);
      if (step > 0) velocity[i] = 0.9 * velocity[i] + g;
      weights[i].sub_(0.05 * velocity[i]);
    }
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_LT((found[i] - weights[i]).abs().max().item<double>(), 1e-5) << i;
  }
}

TEST(TrainTest, TheAverageOfOneClientKeepsItsBits) {
  const LocalTask task = small_task(Method::kSmoothAdv);
  const Partition p = partition(PartitionKind::kWhole, 1);
  const Weights global = start().global;
  const Update update = local_train(task, plain_forward(task.network), global, 0, p.images(0), 0);
  FixedPointSum sum;
  sum.add(update.weights, 1.0);
  const Weights average = sum.average(global);
  for (size_t i = 0; i < average.size(); ++i) {
    const Tensor large = update.weights[i].abs().ge(std::pow(2.0, -27));
    EXPECT_TRUE(at::equal(average[i].masked_select(large), update.weights[i].masked_select(large)));
  }
}

TEST(TrainTest, ThreadsChangeNothing) {
  for (const Method method :
       {Method::kStandard, Method::kAdversarial, Method::kGaussian, Method::kSmoothAdv}) {
    const LocalTask task = small_task(method);
    const Partition p = partition(PartitionKind::kMajorClass);
    SerialExecutor serial;
    const Weights expected = train_with(serial, task, kTwoRounds, p);
    for (const int threads : {1, 3}) {
      ThreadedExecutor threaded(threads, /*plain=*/true);
      expect_same(train_with(threaded, task, kTwoRounds, p), expected);
    }
  }
}

// Different roundings: 30 steps of some ten thousand operations each, every one within 2^-24,
// moved the weights, which moved by hundredths, by 2e-6. Without noise the flat parts of an image
// tie in pooling windows, and rounding decides where a gradient goes: 4e-4 on a CPU with AVX2.
TEST(TrainTest, OurPassesTrainLikeThePlainOnes) {
  for (const Method method :
       {Method::kStandard, Method::kAdversarial, Method::kGaussian, Method::kSmoothAdv}) {
    const LocalTask task = small_task(method);
    const Partition p = partition(PartitionKind::kMajorClass);
    SerialExecutor serial;
    ThreadedExecutor one(1), three(3);
    const Weights expected = train_with(serial, task, kTwoRounds, p);
    const Weights ours = train_with(one, task, kTwoRounds, p), begin = start().global;
    const float tolerance = method == Method::kAdversarial ? 2e-3f : 2e-5f;
    expect_same(train_with(three, task, kTwoRounds, p), ours);
    for (size_t i = 0; i < ours.size(); ++i) {
      EXPECT_LT((ours[i] - expected[i]).abs().max().item<float>(), tolerance) << i;
      EXPECT_GT((ours[i] - begin[i]).abs().max().item<float>(), 1e-3f) << i;
    }
  }
}

TEST(TrainTest, TheCohortsOrderChangesNothing) {
  const LocalTask task = small_task(Method::kGaussian);
  const Partition p = partition(PartitionKind::kIid);
  Cohort cohort = sample_cohort(p, 4, 0, 0), reversed = cohort;
  std::reverse(reversed.clients.begin(), reversed.clients.end());
  std::reverse(reversed.images.begin(), reversed.images.end());
  SerialExecutor executor;
  const Weights global = start().global;
  expect_same(run_round(executor, {task, global, cohort, 0}).sum.average(global),
              run_round(executor, {task, global, reversed, 0}).sum.average(global));
}

TEST(TrainTest, MethodsAndEstimatorsDiffer) {
  SerialExecutor executor;
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
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(at::equal(results[i][0], results[j][0])) << i << j;
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

TEST(TrainTest, TheAverageFollowsTheNumberOfImages) {
  const Weights a = {at::full({2}, 1.0)}, b = {at::full({2}, 4.0)};
  FixedPointSum sum;
  sum.add(a, 0.75);
  sum.add(b, 0.25);
  EXPECT_EQ(sum.kept_share(), 1.0);
  EXPECT_TRUE(at::equal(sum.average(a)[0], at::full({2}, 1.75)));
}

TEST(TrainTest, ABrokenClientIsLeftOutAndCounted) {
  const Weights good = {at::full({2}, 1.5)};
  for (const double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY), 5000.0}) {
    FixedPointSum sum;
    EXPECT_TRUE(sum.add(good, 0.5));
    EXPECT_FALSE(sum.add({at::tensor({1.0f, static_cast<float>(bad)})}, 0.5));
    EXPECT_EQ(sum.dropped(), 1);
    EXPECT_EQ(sum.kept_share(), 0.5);
    EXPECT_TRUE(at::equal(sum.average(good)[0], good[0]));
  }
}

TEST(TrainTest, ADivergingRunEndsInAMessage) {
  LocalTask task = small_task(Method::kStandard);
  task.local.learning_rate = 1e6;
  SerialExecutor executor;
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
  EXPECT_DOUBLE_EQ(task_in_round(task, o, 0).attack.epsilon, 0.25);
  EXPECT_DOUBLE_EQ(task_in_round(task, o, 3).attack.epsilon, 1.0);
  EXPECT_DOUBLE_EQ(task_in_round(task, o, 49).local.learning_rate, 0.05);
  EXPECT_DOUBLE_EQ(task_in_round(task, o, 50).local.learning_rate, 0.005);
  EXPECT_DOUBLE_EQ(task_in_round(task, o, 75).local.learning_rate, 0.0005);
  o.schedule = Schedule::kCosine;
  EXPECT_DOUBLE_EQ(task_in_round(task, o, 50).local.learning_rate, 0.025);
}

TEST(TrainTest, TelemetrySeesTheAttack) {
  const LocalTask task = small_task(Method::kSmoothAdv);
  const Update update = local_train(task, plain_forward(task.network), start().global, 3,
                                    partition(PartitionKind::kIid).images(3), 0);
  EXPECT_EQ(update.telemetry.attacked, 8);
  EXPECT_EQ(update.telemetry.steps, 3);
  EXPECT_GT(update.telemetry.mean_perturbation(), 0.5);
  EXPECT_LE(update.telemetry.mean_perturbation(), 1.0 + 1e-6);
  EXPECT_GT(update.telemetry.mean_drop(), 0.0);
  EXPECT_NEAR(update.telemetry.mean_loss(), std::log(10.0), 0.3);
}

// The estimate is the gradient plus noise, whose part shrinks as the noises grow in number over the
// values of an image: here 16.
TEST(TrainTest, TheOnePointGradientIsComparedWhenAskedFor) {
  Layer normalize{Layer::Kind::kNormalize}, linear{Layer::Kind::kLinear, "linear", 10};
  normalize.mean = {0.5};
  normalize.sd = {0.1};
  const Network network{"tiny", {1, 4, 4}, {normalize, linear}};
  Dataset data;
  data.images = shapes().images.slice(1, 0, 1).slice(2, 0, 32, 8).slice(3, 0, 32, 8).contiguous();
  data.labels = shapes().labels;
  LocalTask task{network, data, /*augment=*/false};
  task.local.steps = 1;
  const auto cosine = [&](int64_t m) {
    task.smoothing.m = m;
    return local_train(task, plain_forward(network), initial_weights(network, Key{1}), 3,
                       partition(PartitionKind::kIid).images(3), 0)
        .telemetry.mean_cosine();
  };
  EXPECT_FALSE(cosine(2));
  task.attack.measure_cosine = true;
  ASSERT_TRUE(cosine(2));
  EXPECT_LT(*cosine(2), 0.4);
  EXPECT_GT(*cosine(1000), 0.9);
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

// An executor whose clients always answer with the same weights.
class FixedAnswer : public Executor {
 public:
  explicit FixedAnswer(std::vector<Weights> answers) : answers_(std::move(answers)) {}
  std::vector<RoundResult> run(const std::vector<Round>& rounds) override {
    std::vector<RoundResult> results(rounds.size());
    for (size_t i = 0; i < rounds.size(); ++i) results[i].sum.add(answers_[rounds[i].t], 1.0);
    return results;
  }

 private:
  std::vector<Weights> answers_;
};

// The heavy ball: v <- beta v + (average - theta), theta <- theta + v, from theta = 0.
TEST(TrainTest, ServerMomentumIsTheHeavyBall) {
  const Network network{"linear", {1, 1, 1}, {{Layer::Kind::kLinear, "linear", 1}}};
  const auto both = [](float value) {
    return Weights{at::full({1, 1}, value), at::full({1}, 2 * value)};
  };
  FixedAnswer executor({both(1), both(1), both(2)});
  LocalTask task{network, shapes()};
  ServerState state{0, both(0), {}};
  std::vector<float> path;
  train(task, {.rounds = 3, .clients_per_round = 1, .server_momentum = 0.5},
        partition(PartitionKind::kIid), executor, state, [&](const ServerState& now, const auto&) {
          path.push_back(now.global[0].item<float>());
          EXPECT_EQ(now.global[1].item<float>(), 2 * path.back());
          return true;
        });
  // v = 1, theta = 1; v = 0.5 + 0, theta = 1.5; v = 0.25 + 0.5, theta = 2.25.
  EXPECT_EQ(path, (std::vector<float>{1.0f, 1.5f, 2.25f}));
}

// A variance that falls from 1 to 0.1 would be carried to -0.71 by the heavy ball.
TEST(TrainTest, ServerMomentumLeavesRunningStatisticsToTheAverage) {
  const Network network{"norm", {2, 3, 3}, {{Layer::Kind::kBatchNorm, "norm"}}};
  const auto statistics = [](float weight, float mean, float variance) {
    return Weights{at::full({2}, weight), at::full({2}, 0.0f), at::full({2}, mean),
                   at::full({2}, variance)};
  };
  FixedAnswer executor({statistics(2, 3, 0.1f), statistics(2, 3, 0.1f)});
  LocalTask task{network, shapes()};
  ServerState state{0, statistics(1, 0, 1), {}};
  train(task, {.rounds = 2, .clients_per_round = 1, .server_momentum = 0.9},
        partition(PartitionKind::kIid), executor, state,
        [](const auto&, const auto&) { return true; });
  EXPECT_FLOAT_EQ(state.global[0][0].item<float>(), 2.9f);  // trained: 1 + 1, then + 0.9
  EXPECT_FLOAT_EQ(state.global[2][0].item<float>(), 3.0f);
  EXPECT_FLOAT_EQ(state.global[3][0].item<float>(), 0.1f);
}

// Two passes over the list are two steps on the same examples, with the momentum of the first.
TEST(TrainTest, PassesAreStepsOverTheSameExamples) {
  LocalTask task = small_task(Method::kGaussian);
  task.local = {.steps = 1, .batch = 8, .passes = 3, .learning_rate = 0.05};
  const Weights global = start().global;
  const auto images = partition(PartitionKind::kIid).images(3);
  const Update found = local_train(task, plain_forward(task.network), global, 3, images, 0);
  EXPECT_EQ(found.telemetry.steps, 3);

  // The examples of one pass, seen by a forward function that writes them down.
  Tensor examples;
  const Forward plain = plain_forward(task.network);
  const Forward spy = [&](const Weights& w, const Tensor& x, const std::optional<Stream>& stream) {
    if (stream) examples = x.detach().clone();
    return plain(w, x, stream);
  };
  LocalTask once = task;
  once.local.passes = 1;
  local_train(once, spy, global, 3, images, 0);
  const std::vector<int64_t> order = shuffle_images(images, 8, 0, 3, 0);
  const Tensor y = shapes().labels.index_select(0, at::tensor(order)).repeat_interleave(2);
  Weights weights, velocity;
  for (const Tensor& w : global) weights.push_back(w.clone().requires_grad_(true));
  for (int pass = 0; pass < 3; ++pass) {
    const Tensor loss = at::cross_entropy_loss(forward(task.network, weights, examples), y);
    const auto gradients = torch::autograd::grad({loss}, weights);
    c10::NoGradGuard no_grad;
    for (size_t i = 0; i < weights.size(); ++i) {
      const Tensor g = gradients[i] + 1e-4 * weights[i];
      if (pass == 0) velocity.push_back(g);
      if (pass > 0) velocity[i] = 0.9 * velocity[i] + g;
      weights[i].sub_(0.05 * velocity[i]);
    }
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_LT((found.weights[i] - weights[i]).abs().max().item<double>(), 1e-6) << i;
    EXPECT_GT((found.weights[i] - global[i]).abs().max().item<double>(), 1e-3) << i;
  }
  // Our own passes do the same.
  ThreadedExecutor threaded(1);
  const Cohort cohort{{3}, {images}, static_cast<int64_t>(images.size())};
  const Weights ours = run_round(threaded, {task, global, cohort, 0}).sum.average(global);
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_LT((ours[i] - weights[i]).abs().max().item<double>(), 2e-5) << i;
  }
}

}  // namespace
}  // namespace fedsmooth
