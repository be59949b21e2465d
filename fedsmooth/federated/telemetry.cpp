#include "fedsmooth/federated/telemetry.h"

#include <algorithm>
#include <cmath>

#include "fedsmooth/federated/client.h"
#include "fedsmooth/federated/local_step.h"

namespace fedsmooth {
namespace {

constexpr int64_t kReferenceNoises = 64;

}  // namespace

void record_attack(const Classifier& f, const Batch& b, const Array& x_adv, const Array& delta,
                   double epsilon, Telemetry& telemetry) {
  const auto mean_probability = [&](const Array& x) {
    const Array p = true_class_probability(f, x, b.y, delta);  // [B, m]
    std::vector<double> means(p.size(0));
    for (int64_t i = 0; i < p.count(); ++i) {
      means[i / p.size(1)] += p.floats()[i] / static_cast<double>(p.size(1));
    }
    return means;
  };
  const std::vector<double> before = mean_probability(b.x), after = mean_probability(x_adv);
  Array moved = x_adv.clone();
  for (int64_t i = 0; i < moved.count(); ++i) moved.floats()[i] -= b.x.floats()[i];
  const std::vector<double> norms = l2_norms(moved);
  for (size_t i = 0; i < norms.size(); ++i) {
    telemetry.add_attack(norms[i] / epsilon, before[i], after[i]);
  }
}

// The gradient is taken as the mean over many more noises than the m of the estimate.
void compare_gradients(const LocalTask& task, Passes& passes, const Weights& global, int64_t k,
                       const std::vector<int64_t>& images, int64_t t, Telemetry& telemetry) {
  if (!task.attack.measure_cosine || !uses_attack(task) || !objective_of(task.method).adds_noise)
    return;
  const Streams streams{task.seed, task.stream_round(t), k};
  const int64_t first = task.first_step(t), batch = task.local.batch;
  passes.load(global);
  const DifferentiableClassifier f = answers_of(passes);
  const auto [x, y, indices] =
      load_batch(task, shuffle_images(images, batch, task.seed, k, streams.round, first * batch),
                 streams.of(Purpose::kAugment, first));
  const double sigma = task.smoothing.sigma;
  const Array noise = draw_noise(x, task.smoothing.m, sigma, streams.of(Purpose::kTraining, first));
  const Array many = draw_noise(x, kReferenceNoises, sigma, streams.of(Purpose::kAttack, first));
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

std::vector<int64_t> Telemetry::to_words() const {
  std::vector<int64_t> words;
  words.reserve(kTelemetryWords);
  visit_words(*this, [&](const int64_t& word) { words.push_back(word); });
  return words;
}

void Telemetry::add_steps(const Terms& sums, int64_t count) {
  loss += sums.fit + sums.robust + sums.entropy;
  robust += sums.robust;
  entropy += sums.entropy;
  steps += count;
}

void Telemetry::add_attack(double ratio, double before, double after) {
  perturbation += ratio;
  drop += before - after;
  const int64_t bin = std::llround(ratio * kBins);
  ++histogram[std::clamp<int64_t>(bin, 0, kBins)];
  ++attacked;
}

double Telemetry::mean_loss() const { return loss.value() / static_cast<double>(steps); }

double Telemetry::mean_robust() const {
  return robust.value() / static_cast<double>(std::max<int64_t>(1, steps));
}

double Telemetry::mean_entropy() const {
  return entropy.value() / static_cast<double>(std::max<int64_t>(1, steps));
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
  double seen = 0;  // a node may send any counts: their sums and products must not overflow
  for (int64_t bin = 0; bin <= kBins; ++bin) {
    seen += static_cast<double>(histogram[bin]);
    if (attacked > 0 && 20 * seen >= 19 * static_cast<double>(attacked)) {
      return static_cast<double>(bin) / static_cast<double>(kBins);
    }
  }
  return 0.0;
}

}  // namespace fedsmooth
