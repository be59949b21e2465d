#include "fedsmooth/jobs/certification/attacker.h"

#include <algorithm>
#include <cmath>

#include "fedsmooth/attack/attack_smoothed.h"
#include "fedsmooth/engine/samplers.h"
#include "fedsmooth/smoothing/noise.h"

namespace fedsmooth::jobs {
namespace {

double distance(const Array& a, const Array& b) {
  double squares = 0;
  for (int64_t i = 0; i < a.count(); ++i) {
    const double difference = a.floats()[i] - b.floats()[i];
    squares += difference * difference;
  }
  return std::sqrt(squares);
}

}  // namespace

Attacker::Attacker(const AttackJob& job)
    : job_(job),
      sampler_(make_sampler(job.subject.f, *job.subject.experiment.certify.noise, 1)),
      f_(job.make_differentiable()) {
  if (sampler_->check(job.data.shape()) != job.subject.fingerprint) {
    throw ClassifierChanged("the model's answers changed before it was attacked");
  }
}

void Attacker::probe() { sampler_->probe(); }

int64_t Attacker::images_per_probe() const { return images_per_wave(*sampler_, job_.n); }

// Returns noises [1, m, C, H, W], which are the same for every epsilon.
Array Attacker::draw_noise(const Array& x, int64_t image) const {
  const Experiment& e = job_.subject.experiment;
  const int64_t m = e.smoothing.m;
  Array noise({m, x.size(0), x.size(1), x.size(2)});
  add_noise(Array(x.sizes()), job_.subject.sigma,
            {make_key(certified_seed(e), Purpose::kAttack), static_cast<uint32_t>(image)}, 0, m,
            noise);
  return noise.with_sizes({1, m, x.size(0), x.size(1), x.size(2)});
}

Array Attacker::perturb(const Array& x, int64_t label, const Array& noise, double epsilon) const {
  AttackOptions options = job_.subject.experiment.attack;
  options.epsilon = epsilon;
  const Array alone = x.with_sizes({1, x.size(0), x.size(1), x.size(2)});
  const Array x_adv = attack_smoothed(f_, alone, {label}, noise, job_.subject.sigma, options)[0];
  // A network with NaN logits has NaN gradients; then the image stays where it is.
  const auto finite = [](float value) { return std::isfinite(value); };
  return std::all_of(x_adv.floats(), x_adv.floats() + x_adv.count(), finite) ? x_adv : x;
}

int64_t Attacker::predict(const Array& x, int64_t image) {
  const ModelUnderTest& subject = job_.subject;
  const Votes votes =
      sampler_->count({x,
                       subject.sigma,
                       job_.n,
                       {make_key(certified_seed(subject.experiment), Purpose::kPrediction),
                        static_cast<uint32_t>(image)}});
  return majority(votes);
}

std::vector<AttackRow> Attacker::attack(int64_t image) {
  const Array x = job_.data.image(image);
  const int64_t label = job_.data.label(image);
  const Array noise = draw_noise(x, image);
  std::vector<AttackRow> rows;
  for (const double epsilon : job_.epsilons) {
    if (job_.stopped()) throw Interrupted{};
    // An example that misled the classifier lies in every larger ball, too.
    if (!rows.empty() && !rows.back().correct()) {
      rows.push_back(rows.back());
      rows.back().epsilon = epsilon;
      continue;
    }
    const Array x_adv = epsilon > 0 ? perturb(x, label, noise, epsilon) : x;
    rows.push_back({image, label, epsilon, predict(x_adv, image), distance(x_adv, x)});
  }
  return rows;
}

}  // namespace fedsmooth::jobs
