#include "fedsmooth/federated/client.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "fedsmooth/engine/threaded_executor.h"
#include "tests/arrays.h"
#include "tests/federated/small_training.h"

namespace fedsmooth {
namespace {

// SGD on the mean cross entropy with rate 0.05, momentum 0.9 and decay 1e-4, written out in double
// around the reference's gradients.
class PlainSgd {
 public:
  explicit PlainSgd(const Weights& start) { passes_->load(start); }

  void step(const Array& x, const std::vector<int64_t>& y, double rate = 0.05) {
    const Array logits = passes_->forward(x, std::nullopt);
    Array gradient(logits.sizes());
    for (int64_t i = 0; i < logits.size(0); ++i) {
      const std::vector<float> z = values_of(logits[i]);
      double sum = 0;
      for (const double value : z) sum += std::exp(value);
      for (int64_t k = 0; k < std::ssize(z); ++k) {
        const double p = std::exp(double{z[k]}) / sum - (k == y[i] ? 1 : 0);
        gradient[i].floats()[k] = static_cast<float>(p / static_cast<double>(logits.size(0)));
      }
    }
    const std::vector<WeightGradient> found = passes_->backward_to_weights(gradient);
    velocity_.resize(found.size());
    for (size_t t = 0; t < found.size(); ++t) {
      velocity_[t].resize(found[t].count);
      for (int64_t i = 0; i < found[t].count; ++i) {
        float& w = found[t].weights[i];
        double& v = velocity_[t][i];
        v = 0.9 * v + found[t].gradient[i] + 1e-4 * w;
        w = static_cast<float>(w - rate * v);
      }
    }
  }

  Weights weights() const { return passes_->weights(); }

 private:
  const std::unique_ptr<Passes> passes_ = reference_passes(small_network());
  std::vector<std::vector<double>> velocity_;
};

// Rates 0.05, 0.0275 and 0.005: linearly to a tenth in the round's last step.
TEST(ClientTest, TheLearningRateFallsWithinARound) {
  LocalTask task = small_task(Method::kStandard);
  task.augment = false;
  task.local.batch = 600;
  task.local.steps = 3;
  task.local.decay = 0.1;
  std::vector<int64_t> all(600);
  std::iota(all.begin(), all.end(), 0);
  const Weights found =
      local_train(task, *reference_passes(small_network()), start().global, 0, all, 0).weights;
  PlainSgd sgd(start().global), constant(start().global);
  const Array x = to_unit_interval(shapes().images);
  for (const double rate : {0.05, 0.0275, 0.005}) {
    sgd.step(x, shapes().labels, rate);
    constant.step(x, shapes().labels);
  }
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_LT(difference(found[i], sgd.weights()[i]), 1e-5) << i;
    EXPECT_GT(difference(found[i], constant.weights()[i]), 1e-4) << i;
  }
  task.local.steps = 1;
  EXPECT_EQ(task.local.rate_of_step(0), 0.05);
}

// One client that holds everything is plain SGD. The average's fixed point keeps the bits of every
// weight of at least 2^-27.
TEST(ClientTest, OneClientIsPlainSgd) {
  LocalTask task = small_task(Method::kStandard);
  task.augment = false;
  task.local.batch = 600;  // the whole set, so that the order does not matter to what is drawn
  const Partition whole = partition(PartitionKind::kWhole, 1);
  SerialExecutor executor(reference_passes);
  ServerState state = start();
  train({task,
         {.rounds = 1, .clients_per_round = 1},
         whole,
         state,
         [](const auto&, const auto&) { return true; }},
        executor);

  const Cohort cohort = sample_cohort(whole, 1, 0, 0);
  ASSERT_EQ(cohort.images[0].size(), 600U);
  PlainSgd sgd(start().global);
  // The same images in another order give the same loss up to rounding.
  const Array x = to_unit_interval(shapes().images);
  for (int64_t step = 0; step < task.local.steps; ++step) sgd.step(x, shapes().labels);
  const Weights weights = sgd.weights();
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_LT(difference(state.global[i], weights[i]), 1e-5) << i;
    EXPECT_GT(difference(state.global[i], start().global[i]), 1e-4) << i;
  }
}

TEST(ClientTest, TelemetrySeesTheAttack) {
  const LocalTask task = small_task(Method::kSmoothAdv);
  const auto passes = reference_passes(task.network);
  const Update update = local_train(task, *passes, start().global, 3, images_of_client_3(), 0);
  EXPECT_EQ(update.telemetry.attacked, 8);
  EXPECT_EQ(update.telemetry.steps, 3);
  EXPECT_GT(update.telemetry.mean_perturbation(), 0.5);
  EXPECT_LE(update.telemetry.mean_perturbation(), 1.0 + 1e-6);
  EXPECT_GT(update.telemetry.mean_drop(), 0.0);
  EXPECT_NEAR(update.telemetry.mean_loss(), std::log(10.0), 0.3);
}

/// The first channel of the shapes, every eighth pixel: [N, 1, 4, 4].
Array tiny_images() {
  Array tiny({shapes().size(), 1, 4, 4}, Array::Type::kByte);
  for (int64_t i = 0; i < shapes().size(); ++i) {
    const Array plane = shapes().images[i][0];
    for (int64_t y = 0; y < 4; ++y) {
      for (int64_t x = 0; x < 4; ++x) tiny[i][0][y].bytes()[x] = plane[8 * y].bytes()[8 * x];
    }
  }
  return tiny;
}

// The estimate is the gradient plus noise, whose part shrinks as the noises grow in number over the
// values of an image: here 16.
TEST(ClientTest, TheOnePointGradientIsComparedWhenAskedFor) {
  Layer normalize{Layer::Kind::kNormalize}, linear{Layer::Kind::kLinear, "linear", 10};
  normalize.mean = {0.5};
  normalize.sd = {0.1};
  const Network network{"tiny", {1, 4, 4}, {normalize, linear}};
  Dataset data;
  data.images = tiny_images();
  data.labels = shapes().labels;
  LocalTask task{network, data, /*augment=*/false};
  task.local.steps = 1;
  const auto cosine = [&](int64_t m) {
    task.smoothing.m = m;
    const Weights start = initial_weights(network, Key{1});
    const Round round{task, start, {{3}, {images_of_client_3()}}};
    return train_client(round, 0, *reference_passes(network)).telemetry.mean_cosine();
  };
  EXPECT_FALSE(cosine(2));
  task.attack.measure_cosine = true;
  ASSERT_TRUE(cosine(2));
  EXPECT_LT(*cosine(2), 0.4);
  EXPECT_GT(*cosine(1000), 0.9);
}

// The reference, and the examples of its last pass of training.
class WatchedPasses : public Passes {
 public:
  void load(const Weights& weights) override { inner_->load(weights); }
  Weights weights() const override { return inner_->weights(); }
  std::vector<std::span<float>> trained_values() override { return inner_->trained_values(); }
  Array forward(const Array& images, const std::optional<Stream>& training) override {
    if (training) examples = images.clone();
    return inner_->forward(images, training);
  }
  Array backward_to_images(const Array& gradient) override {
    return inner_->backward_to_images(gradient);
  }
  std::vector<WeightGradient> backward_to_weights(const Array& gradient) override {
    return inner_->backward_to_weights(gradient);
  }

  Array examples;

 private:
  const std::unique_ptr<Passes> inner_ = reference_passes(small_network());
};

// Two passes over the list are two steps on the same examples, with the momentum of the first.
TEST(ClientTest, PassesAreStepsOverTheSameExamples) {
  LocalTask task = small_task(Method::kGaussian);
  task.local = {.steps = 1, .batch = 8, .passes = 3, .learning_rate = 0.05};
  const Weights global = start().global;
  const auto images = images_of_client_3();
  const auto passes = reference_passes(task.network);
  const Update found = local_train(task, *passes, global, 3, images, 0);
  EXPECT_EQ(found.telemetry.steps, 3);

  WatchedPasses watched;
  LocalTask once = task;
  once.local.passes = 1;
  local_train(once, watched, global, 3, images, 0);
  std::vector<int64_t> y;
  for (const int64_t i : shuffle_images(images, 8, 0, 3, 0))
    y.insert(y.end(), 2, shapes().label(i));
  PlainSgd sgd(global);
  for (int pass = 0; pass < 3; ++pass) sgd.step(watched.examples, y);
  const Weights weights = sgd.weights();
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_LT(difference(found.weights[i], weights[i]), 1e-6) << i;
    EXPECT_GT(difference(found.weights[i], global[i]), 1e-3) << i;
  }
  // The fastest passes do the same.
  ThreadedExecutor threaded(1);
  const Cohort cohort{{3}, {images}, static_cast<int64_t>(images.size())};
  const Weights ours =
      run_round(threaded, {task, global, cohort, 0}).sum.average(global, parameters(task.network));
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_LT(difference(ours[i], weights[i]), 2e-5) << i;
  }
}

}  // namespace
}  // namespace fedsmooth
