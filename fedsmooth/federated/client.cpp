#include "fedsmooth/federated/client.h"

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/draws.h"
#include "fedsmooth/base/softmax.h"
#include "fedsmooth/data/augment.h"

namespace fedsmooth {
namespace {

// The streams of one client in one round.
struct Streams {
  uint64_t seed;
  int64_t round, client;

  Stream of(Purpose purpose, int64_t item) const {
    return {make_key(seed, purpose, static_cast<uint64_t>(round)), static_cast<uint32_t>(item),
            static_cast<uint32_t>(client)};
  }
};

// A minibatch: images [B, C, H, W] in [0, 1], and their labels.
struct Batch {
  Array x;
  Labels y;
};

Batch load_batch(const LocalTask& task, const std::vector<int64_t>& images, Stream stream) {
  Batch batch{to_unit_interval(task.data.images.pick(images)), {}};
  if (task.augment) batch.x = augment(batch.x, stream);
  for (const int64_t i : images) batch.y.push_back(task.data.label(i));
  return batch;
}

constexpr int64_t kReferenceNoises = 64;

// sigma N(0, I) as [B, m, C, H, W]: copy i of image j is sample j m + i.
Array draw_noise(const Array& x, const SmoothingOptions& o, Stream stream) {
  Array noise({x.size(0), o.m, x.size(1), x.size(2), x.size(3)});
  const int64_t size = x.count() / x.size(0);
  const auto sigma = static_cast<float>(o.sigma);
  float* out = noise.floats();
  for (int64_t sample = 0; sample < x.size(0) * o.m; ++sample, out += size) {
    fill_normal(stream, static_cast<uint32_t>(sample), out, size);
    for (int64_t j = 0; j < size; ++j) out[j] *= sigma;
  }
  return noise;
}

// SGD with momentum and weight decay as in PyTorch: v <- momentum v + g, theta <- theta - rate v.
// FedProx adds mu (theta - global) to g; `global` are the weights before the first step.
class Sgd {
 public:
  explicit Sgd(const LocalOptions& options)
      : rate_(static_cast<float>(options.learning_rate)),
        momentum_(static_cast<float>(options.momentum)),
        decay_(static_cast<float>(options.weight_decay)),
        mu_(static_cast<float>(options.mu)) {}

  void step(const std::vector<WeightGradient>& gradients) {
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
      for (int64_t j = 0; j < count; ++j) w[j] -= rate_ * v[j];
    }
  }

 private:
  float rate_, momentum_, decay_, mu_;
  std::vector<std::vector<float>> velocity_;  // zero before the first step
  std::vector<std::vector<float>> global_;    // for FedProx alone
};

// Mean cross entropy of logits [N, K], and its gradient.
struct Loss {
  double value = 0;
  Array gradient;
};

Loss cross_entropy(const Array& logits, const Labels& y) {
  const int64_t rows = logits.size(0), classes = logits.size(1);
  Loss loss{0, Array(logits.sizes())};
  for (int64_t r = 0; r < rows; ++r) {
    const std::vector<double> p = softmax(logits.floats() + r * classes, classes);
    loss.value -= std::log(p[y[r]]) / static_cast<double>(rows);
    for (int64_t k = 0; k < classes; ++k) {
      loss.gradient.floats()[r * classes + k] =
          static_cast<float>((p[k] - (k == y[r] ? 1 : 0)) / static_cast<double>(rows));
    }
  }
  return loss;
}

void record_attack(const Classifier& f, const Batch& batch, const Array& x_adv, const Array& noise,
                   double epsilon, Telemetry& telemetry) {
  const auto mean_probability = [&](const Array& x) {
    const Array p = true_class_probability(f, x, batch.y, noise);  // [B, m]
    std::vector<double> means(p.size(0));
    for (int64_t i = 0; i < p.count(); ++i) {
      means[i / p.size(1)] += p.floats()[i] / static_cast<double>(p.size(1));
    }
    return means;
  };
  const std::vector<double> before = mean_probability(batch.x), after = mean_probability(x_adv);
  Array moved = x_adv.clone();
  for (int64_t i = 0; i < moved.count(); ++i) moved.floats()[i] -= batch.x.floats()[i];
  const std::vector<double> norms = l2_norms(moved);
  for (size_t i = 0; i < norms.size(); ++i) {
    telemetry.add_attack(norms[i] / epsilon, before[i], after[i]);
  }
}

// SmoothAdv(theta, b) up to its list L: noisy adversarial examples [B m, C, H, W].
Array list_examples(const LocalTask& task, Passes& passes, const Batch& batch, Stream stream,
                    bool record, Telemetry& telemetry) {
  const Array& x = batch.x;
  const Array noise = adds_noise(task.method)
                          ? draw_noise(x, task.smoothing, stream)
                          : Array({x.size(0), 1, x.size(1), x.size(2), x.size(3)});
  if (!attacks(task.method) || task.attack.epsilon == 0) return noisy_copies(x, noise);
  // The attack is on the network as it answers, not as it trains.
  const DifferentiableClassifier f = answers_of(passes);
  const Array x_adv = smooth_adv(f, x, batch.y, noise, task.smoothing.sigma, task.attack);
  if (record) record_attack(f.logits, batch, x_adv, noise, task.attack.epsilon, telemetry);
  return noisy_copies(x_adv, noise);
}

// Each label `times` times in a row.
Labels repeated(const Labels& labels, int64_t times) {
  Labels all;
  for (const int64_t label : labels) all.insert(all.end(), times, label);
  return all;
}

}  // namespace

bool adds_noise(Method method) {
  return method == Method::kSmoothAdv || method == Method::kGaussian;
}

bool attacks(Method method) {
  return method == Method::kSmoothAdv || method == Method::kAdversarial;
}

std::vector<int64_t> shuffle_images(const std::vector<int64_t>& images, int64_t count,
                                    uint64_t seed, int64_t k, int64_t t) {
  const Streams streams{seed, t, k};
  const auto held = static_cast<int64_t>(images.size());
  std::vector<int64_t> order;
  order.reserve(count + held);
  for (int64_t epoch = 0; static_cast<int64_t>(order.size()) < count; ++epoch) {
    for (const int64_t i : Draws(streams.of(Purpose::kShuffle, epoch)).choose(held, held)) {
      order.push_back(images[i]);
    }
  }
  order.resize(count);
  return order;
}

// The gradient is taken as the mean over many more noises than the m of the estimate.
void compare_gradients(const LocalTask& task, Passes& passes, const Weights& global, int64_t k,
                       const std::vector<int64_t>& images, int64_t t, Telemetry& telemetry) {
  if (!task.attack.measure_cosine || task.method != Method::kSmoothAdv) return;
  const Streams streams{task.seed, t, k};
  passes.load(global);
  const DifferentiableClassifier f = answers_of(passes);
  const auto [x, y] = load_batch(task, shuffle_images(images, task.local.batch, task.seed, k, t),
                                 streams.of(Purpose::kAugment, 0));
  const double sigma = task.smoothing.sigma;
  const Array noise = draw_noise(x, task.smoothing, streams.of(Purpose::kTraining, 0));
  const Array many = draw_noise(x, {sigma, kReferenceNoises}, streams.of(Purpose::kAttack, 0));
  const Array truth = stochastic_gradient(f, x, y, many);
  const Array estimate = one_point_gradient(f.logits, x, y, noise, sigma);
  const std::vector<double> a = l2_norms(truth), b = l2_norms(estimate);
  const int64_t size = x.count() / x.size(0);
  for (int64_t i = 0; i < x.size(0); ++i) {
    double product = 0;
    for (int64_t j = i * size; j < (i + 1) * size; ++j) {
      product += double{truth.floats()[j]} * double{estimate.floats()[j]};
    }
    telemetry.cosine += product / std::max(a[i] * b[i], 1e-30);
  }
  telemetry.compared += x.size(0);
}

Update local_train(const LocalTask& task, Passes& passes, const Weights& global, int64_t k,
                   const std::vector<int64_t>& images, int64_t t) {
  const Streams streams{task.seed, t, k};
  Telemetry telemetry;
  compare_gradients(task, passes, global, k, images, t, telemetry);
  passes.load(global);
  Sgd sgd(task.local);
  const int64_t size = task.local.batch;
  const std::vector<int64_t> order =
      shuffle_images(images, task.local.steps * size, task.seed, k, t);
  for (int64_t i = 0; i < task.local.steps; ++i) {
    const std::vector<int64_t> chosen(order.begin() + i * size, order.begin() + (i + 1) * size);
    const Batch batch = load_batch(task, chosen, streams.of(Purpose::kAugment, i));
    // The attack is looked at once a round and client: it costs two more forward passes.
    const Array examples = list_examples(task, passes, batch, streams.of(Purpose::kTraining, i),
                                         /*record=*/i == 0, telemetry);
    const Labels labels = repeated(batch.y, examples.size(0) / size);
    for (int64_t pass = 0; pass < task.local.passes; ++pass) {
      const Array logits =
          passes.forward(examples, streams.of(Purpose::kDropout, i * task.local.passes + pass));
      const Loss loss = cross_entropy(logits, labels);
      sgd.step(passes.backward_to_weights(loss.gradient));
      telemetry.loss += loss.value;
      ++telemetry.steps;
    }
  }
  return {passes.weights(), telemetry};
}

void Telemetry::add(const Telemetry& other) {
  loss += other.loss;
  steps += other.steps;
  perturbation += other.perturbation;
  drop += other.drop;
  attacked += other.attacked;
  cosine += other.cosine;
  compared += other.compared;
  for (size_t i = 0; i < histogram.size(); ++i) histogram[i] += other.histogram[i];
}

void Telemetry::add_attack(double ratio, double before, double after) {
  perturbation += ratio;
  drop += before - after;
  const int64_t bin = std::llround(ratio * kBins);
  ++histogram[std::clamp<int64_t>(bin, 0, kBins)];
  ++attacked;
}

double Telemetry::mean_loss() const {
  return loss.value() / static_cast<double>(std::max<int64_t>(1, steps));
}

double Telemetry::mean_perturbation() const {
  return perturbation.value() / static_cast<double>(std::max<int64_t>(1, attacked));
}

double Telemetry::mean_drop() const {
  return drop.value() / static_cast<double>(std::max<int64_t>(1, attacked));
}

std::optional<double> Telemetry::mean_cosine() const {
  if (compared == 0) return std::nullopt;
  return cosine.value() / static_cast<double>(compared);
}

double Telemetry::p95_perturbation() const {
  int64_t seen = 0;
  for (int64_t bin = 0; bin <= kBins; ++bin) {
    seen += histogram[bin];
    if (attacked > 0 && 20 * seen >= 19 * attacked) {
      return static_cast<double>(bin) / static_cast<double>(kBins);
    }
  }
  return 0.0;
}

}  // namespace fedsmooth
