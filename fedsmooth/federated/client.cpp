#include "fedsmooth/federated/client.h"

#include <algorithm>

#include "fedsmooth/base/draws.h"
#include "fedsmooth/federated/clients/calibrate.h"
#include "fedsmooth/federated/local_step.h"

namespace fedsmooth {
namespace {

// SGD with momentum and weight decay as in PyTorch: v <- momentum v + g, theta <- theta - rate v.
// FedProx adds mu (theta - global) to g; `global` are the weights before the first step.
class Sgd {
 public:
  explicit Sgd(const LocalOptions& options)
      : momentum_(static_cast<float>(options.momentum)),
        decay_(static_cast<float>(options.weight_decay)),
        mu_(static_cast<float>(options.mu)) {}

  /// Takes up a momentum from where passes have their weights.
  void load_velocity(const std::vector<std::span<float>>& values) {
    for (const std::span<float> v : values) velocity_.emplace_back(v.begin(), v.end());
  }
  /// Puts it there.
  void store_velocity(const std::vector<std::span<float>>& values) const {
    for (size_t i = 0; i < values.size(); ++i) {
      std::copy(velocity_[i].begin(), velocity_[i].end(), values[i].begin());
    }
  }

  void step(const std::vector<WeightGradient>& gradients, double learning_rate) {
    const auto rate = static_cast<float>(learning_rate);
    velocity_.resize(gradients.size());
    global_.resize(gradients.size());
    for (size_t i = 0; i < gradients.size(); ++i) {
      const auto& [w, g, count] = gradients[i];
      velocity_[i].resize(count, 0.0f);
      float* v = velocity_[i].data();
      if (mu_ == 0) {
        for (int64_t j = 0; j < count; ++j) v[j] = momentum_ * v[j] + (g[j] + decay_ * w[j]);
      } else {
        if (global_[i].empty()) global_[i].assign(w, w + count);
        const float* from = global_[i].data();
        for (int64_t j = 0; j < count; ++j) {
          v[j] = momentum_ * v[j] + (g[j] + decay_ * w[j] + mu_ * (w[j] - from[j]));
        }
      }
      for (int64_t j = 0; j < count; ++j) w[j] -= rate * v[j];
    }
  }

 private:
  float momentum_, decay_, mu_;
  std::vector<std::vector<float>> velocity_;  // zero before the first step
  std::vector<std::vector<float>> global_;    // for FedProx alone
};

// The images of local iteration i.
Batch sample_minibatch(const LocalStep& step, const std::vector<int64_t>& order) {
  const auto first = order.begin() + (step.i - step.first()) * step.task.local.batch;
  return load_batch(step.task, {first, first + step.task.local.batch},
                    step.streams.of(Purpose::kAugment, step.i));
}

// Noises delta_i^(j), i = 1, ..., m, for the images x^(j) of a minibatch.
Array generate_noises(const LocalStep& step, const Array& x) {
  const LocalTask& task = step.task;
  if (!objective_of(task.method).adds_noise) {
    return Array({x.size(0), 1, x.size(1), x.size(2), x.size(3)});
  }
  return draw_noise(x, task.smoothing.m, task.smoothing.sigma,
                    step.streams.of(Purpose::kTraining, step.i));
}

// The list L of SmoothAdv.
Examples list_examples(LocalStep& step, const Batch& b, const Array& delta) {
  const LocalTask& task = step.task;
  Array x_hat = b.x;
  if (uses_attack(task) && task.attack.epsilon > 0) {
    // The attack is on the network as it answers, not as it trains.
    const DifferentiableClassifier F = answers_of(step.passes);
    x_hat = attack_smoothed(F, b.x, b.y, delta, task.smoothing.sigma, task.attack);
    if (step.i == step.first()) {
      record_attack(F.logits, b, x_hat, delta, task.attack.epsilon, step.telemetry);
    }
  }
  return {noisy_copies(x_hat, delta), b.y, delta.size(1)};
}

// Other objectives may have lists of their own.
Examples examples_of(LocalStep& step, const Batch& b, const Array& delta) {
  const auto own = objective_of(step.task.method).list;
  return own != nullptr ? own(step, b, delta) : list_examples(step, b, delta);
}

// SmoothAdv(theta, b): adversarial training with randomized smoothing.
void smooth_adv(LocalStep& step, Sgd& sgd, const Batch& b) {
  const LocalTask& task = step.task;
  Passes& theta = step.passes;
  const Array delta = generate_noises(step, b.x);
  const Examples L = examples_of(step, b, delta);  // (x_hat^(j) + delta_i^(j), y^(j))
  for (int64_t pass = 0; pass < task.local.passes; ++pass) {
    const Array logits = theta.forward(
        L.rows, step.streams.of(Purpose::kDropout, step.i * task.local.passes + pass));
    const Loss loss = score_examples(task, L, logits);
    sgd.step(theta.backward_to_weights(loss.gradient),
             task.local.rate_of_step(step.i - step.first()));
    step.telemetry.add_steps(loss.terms, 1);
  }
}

// With the momentum of the steps before, if there is some. The passes lose their weights.
Sgd begin_sgd(const LocalOptions& options, Passes& passes, const Weights& velocity) {
  Sgd sgd(options);
  if (velocity.empty()) return sgd;
  passes.load(velocity);
  sgd.load_velocity(passes.trained_values());
  return sgd;
}

// In the order of parameters(). The passes lose their weights.
Weights take_velocity(const LocalTask& task, Passes& passes, const Sgd& sgd) {
  sgd.store_velocity(passes.trained_values());
  Weights velocity = passes.weights();
  const std::vector<Parameter> known = parameters(task.network);
  for (size_t i = 0; i < known.size(); ++i) {
    if (!known[i].trained) velocity[i] = Array(known[i].shape);
  }
  return velocity;
}

}  // namespace

// LocalTrain(k, theta): local training of client k.
Update local_train(const LocalTask& task, Passes& passes, const Weights& global, int64_t k,
                   const std::vector<int64_t>& images, int64_t t, const Weights& velocity) {
  Telemetry telemetry;
  Sgd sgd = begin_sgd(task.local, passes, velocity);
  passes.load(global);  // theta
  std::unique_ptr<Passes> shifted;
  if (task.local.calibrate) shifted = calibrated(passes, label_offsets(task, k, images));
  const Streams streams{task.seed, task.stream_round(t), k};
  LocalStep step{task, shifted ? *shifted : passes, streams, task.first_step(t), telemetry, t};
  const std::vector<int64_t> order = choose_images(task, images, k, t);
  for (; step.i < step.first() + task.local.steps; ++step.i) {  // E = task.local.steps
    const Batch b = sample_minibatch(step, order);
    smooth_adv(step, sgd, b);  // theta <- SmoothAdv(theta, b)
  }
  Update update{passes.weights(), telemetry};
  if (task.continuous) update.velocity = take_velocity(task, passes, sgd);
  return update;
}

double LocalOptions::rate_of_step(int64_t i) const {
  if (decay == 1 || steps == 1) return learning_rate;
  const double done = static_cast<double>(i) / static_cast<double>(steps - 1);
  return learning_rate * (1 - (1 - decay) * done);
}

StepOptions StepOptions::without_numbers() const {
  StepOptions o = *this;
  o.smoothing.sigma = 0;
  o.attack.epsilon = attack.epsilon > 0 ? 1 : 0;  // without an attack a step is another one
  o.attack.step_size = 0;
  o.attack.warmup_rounds = 0;
  o.attack.measure_cosine = false;
  o.local.learning_rate = o.local.momentum = o.local.weight_decay = 0;
  o.local.decay = local.decay < 1 ? 0 : 1;  // a constant rate is never read again
  o.local.mu = local.mu > 0 ? 1 : 0;        // without FedProx a step is another one
  o.objective.lambda = o.objective.eta = o.objective.step_size = std::nullopt;
  return o;
}

StepOptions step_of(const LocalTask& task) {
  const StepOptions all = {task.augment, task.method, task.smoothing,
                           task.attack,  task.local,  task.objective};
  StepOptions step = all.without_numbers();
  if (objective_of(task.method).ascent != nullptr) step.objective.steps = noise_ascent(task).steps;
  return step;
}

std::vector<int64_t> choose_images(const LocalTask& task, const std::vector<int64_t>& images,
                                   int64_t k, int64_t t) {
  const auto choose = objective_of(task.method).choose;
  if (choose != nullptr) return choose(task, images, k, t);
  return images_of_round(task, images, k, t);
}

bool flips_labels(const LocalTask& task, int64_t k) {
  return std::binary_search(task.flippers.begin(), task.flippers.end(), k);
}

std::vector<int64_t> shuffle_images(const std::vector<int64_t>& images, int64_t count,
                                    uint64_t seed, int64_t k, int64_t t, int64_t skips) {
  const Streams streams{seed, t, k};
  const auto held = static_cast<int64_t>(images.size());
  int64_t epoch = skips / held;
  skips %= held;
  std::vector<int64_t> order;
  order.reserve(skips + count + held);
  for (; std::ssize(order) < skips + count; ++epoch) {
    for (const int64_t i : Draws(streams.of(Purpose::kShuffle, epoch)).choose(held, held)) {
      order.push_back(images[i]);
    }
  }
  return {order.begin() + skips, order.begin() + skips + count};
}

std::vector<int64_t> images_of_round(const LocalTask& task, const std::vector<int64_t>& images,
                                     int64_t k, int64_t t) {
  const LocalOptions& o = task.local;
  return shuffle_images(images, o.steps * o.batch, task.seed, k, task.stream_round(t),
                        task.first_step(t) * o.batch);
}

}  // namespace fedsmooth
