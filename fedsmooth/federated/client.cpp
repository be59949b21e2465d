#include "fedsmooth/federated/client.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/draws.h"
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

// Images as [B, C, H, W] in [0, 1].
Tensor load_batch(const LocalTask& task, const Tensor& batch, Stream stream) {
  const Tensor x = task.data.images.index_select(0, batch).to(at::kFloat).div(255);
  return task.augment ? augment(x, stream) : x;
}

constexpr int64_t kReferenceNoises = 64;

// sigma N(0, I) as [B, m, C, H, W]: copy i of image j is sample j m + i.
Tensor draw_noise(const Tensor& x, const SmoothingOptions& o, Stream stream) {
  Tensor noise = at::empty({x.size(0), o.m, x.size(1), x.size(2), x.size(3)});
  const int64_t size = x[0].numel();
  float* out = noise.data_ptr<float>();
  for (int64_t sample = 0; sample < x.size(0) * o.m; ++sample, out += size) {
    fill_normal(stream, static_cast<uint32_t>(sample), out, size);
  }
  return noise.mul_(o.sigma);
}

// SGD with momentum and weight decay as in PyTorch; running statistics are left alone.
class Sgd {
 public:
  Sgd(Weights& weights, const std::vector<Parameter>& parameters, const LocalOptions& options)
      : options_(options) {
    for (size_t i = 0; i < weights.size(); ++i) {
      if (parameters[i].trained) trained_.push_back(weights[i].requires_grad_(true));
    }
    velocity_.resize(trained_.size());
  }

  void step(const Tensor& loss) {
    const auto gradients = torch::autograd::grad({loss}, trained_);
    c10::NoGradGuard no_grad;
    for (size_t i = 0; i < trained_.size(); ++i) {
      const Tensor g = gradients[i].add(trained_[i], options_.weight_decay);
      velocity_[i] = velocity_[i].defined() ? velocity_[i].mul_(options_.momentum).add_(g) : g;
      trained_[i].sub_(velocity_[i], options_.learning_rate);
    }
  }

 private:
  LocalOptions options_;
  std::vector<Tensor> trained_, velocity_;
};

void record_attack(const Classifier& f, const Tensor& x, const Tensor& x_adv, const Tensor& y,
                   const Tensor& noise, double epsilon, Telemetry& telemetry) {
  c10::NoGradGuard no_grad;
  const Tensor before = true_class_probability(f, x, y, noise).mean(1);
  const Tensor after = true_class_probability(f, x_adv, y, noise).mean(1);
  const Tensor size = l2_norm(x_adv - x).flatten().contiguous();
  for (int64_t i = 0; i < size.numel(); ++i) {
    telemetry.add_attack(size.data_ptr<float>()[i] / epsilon, before.data_ptr<float>()[i],
                         after.data_ptr<float>()[i]);
  }
}

// SmoothAdv(theta, b) up to its list L: noisy adversarial examples [B m, C, H, W].
Tensor list_examples(const LocalTask& task, const Classifier& f, const Tensor& x, const Tensor& y,
                     Stream stream, bool record, Telemetry& telemetry) {
  const Tensor noise = adds_noise(task.method)
                           ? draw_noise(x, task.smoothing, stream)
                           : at::zeros({x.size(0), 1, x.size(1), x.size(2), x.size(3)});
  Tensor x_adv = x;
  if (attacks(task.method) && task.attack.epsilon > 0) {
    x_adv = smooth_adv(f, x, y, noise, task.smoothing.sigma, task.attack);
    if (record) record_attack(f, x, x_adv, y, noise, task.attack.epsilon, telemetry);
  }
  return (x_adv.unsqueeze(1) + noise).flatten(0, 1);
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

Forward plain_forward(const Network& network) {
  return
      [&network](const Weights& weights, const Tensor& x, const std::optional<Stream>& training) {
        return training ? forward_training(network, weights, x, *training)
                        : forward(network, weights, x);
      };
}

// The gradient is taken as the mean over many more noises than the m of the estimate.
void compare_gradients(const LocalTask& task, const Forward& forward, const Weights& global,
                       int64_t k, const std::vector<int64_t>& images, int64_t t,
                       Telemetry& telemetry) {
  if (!task.attack.measure_cosine || task.method != Method::kSmoothAdv) return;
  const Streams streams{task.seed, t, k};
  const Classifier f = [&](const Tensor& x) { return forward(global, x, {}); };
  const Tensor batch = at::tensor(shuffle_images(images, task.local.batch, task.seed, k, t));
  const Tensor y = task.data.labels.index_select(0, batch);
  const Tensor x = load_batch(task, batch, streams.of(Purpose::kAugment, 0));
  const double sigma = task.smoothing.sigma;
  const Tensor noise = draw_noise(x, task.smoothing, streams.of(Purpose::kTraining, 0));
  const Tensor many = draw_noise(x, {sigma, kReferenceNoises}, streams.of(Purpose::kAttack, 0));
  const Tensor truth = stochastic_gradient(f, x, y, many);
  const Tensor estimate = one_point_gradient(f, x, y, noise, sigma);
  const Tensor norms = (l2_norm(truth) * l2_norm(estimate)).flatten().clamp_min(1e-30);
  const Tensor cosine = (truth * estimate).flatten(1).sum(1) / norms;
  telemetry.cosine += cosine.to(at::kDouble).sum().item<double>();
  telemetry.compared += x.size(0);
}

Update local_train(const LocalTask& task, const Forward& forward, const Weights& global, int64_t k,
                   const std::vector<int64_t>& images, int64_t t) {
  const Streams streams{task.seed, t, k};
  Weights weights;
  for (const Tensor& w : global) weights.push_back(w.detach().clone());
  Sgd sgd(weights, parameters(task.network), task.local);
  // The attack is on the network as it answers, not as it trains, and needs no weight gradients.
  Weights frozen;
  for (const Tensor& w : weights) frozen.push_back(w.detach());  // shares the values
  const Classifier f = [&](const Tensor& x) { return forward(frozen, x, {}); };

  Telemetry telemetry;
  compare_gradients(task, forward, frozen, k, images, t, telemetry);
  const int64_t size = task.local.batch;
  std::vector<int64_t> order = shuffle_images(images, task.local.steps * size, task.seed, k, t);
  const Tensor batches = at::from_blob(order.data(), {task.local.steps, size}, at::kLong);
  for (int64_t i = 0; i < task.local.steps; ++i) {
    const Tensor batch = batches[i];
    const Tensor y = task.data.labels.index_select(0, batch);
    const Tensor x = load_batch(task, batch, streams.of(Purpose::kAugment, i));
    // The attack is looked at once a round and client: it costs two more forward passes.
    const Tensor examples = list_examples(task, f, x, y, streams.of(Purpose::kTraining, i),
                                          /*record=*/i == 0, telemetry);
    const Tensor labels = y.repeat_interleave(examples.size(0) / y.size(0));
    for (int64_t pass = 0; pass < task.local.passes; ++pass) {
      c10::AutoGradMode enable(true);
      const Tensor logits =
          forward(weights, examples, streams.of(Purpose::kDropout, i * task.local.passes + pass));
      const Tensor loss = at::cross_entropy_loss(logits, labels);
      sgd.step(loss);
      telemetry.loss += loss.item<double>();
      ++telemetry.steps;
    }
  }
  return {std::move(frozen), telemetry};
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
