#include "cli/attacker.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "fedsmooth/attack/smooth_adv.h"
#include "fedsmooth/smoothing/noise.h"

namespace fedsmooth::cli {

Attacker::Attacker(const AttackPlan& plan) : plan_(plan), sampler_(plan.subject.f) {}

// [1, m, C, H, W]: the same noises for every epsilon.
Tensor Attacker::draw_noise(const Tensor& x, int64_t image) const {
  const Experiment& e = plan_.subject.experiment;
  const int64_t m = e.smoothing.m;
  Tensor noise = at::empty({m, x.size(0), x.size(1), x.size(2)});
  add_noise(at::zeros_like(x), plan_.subject.sigma,
            {make_key(certified_seed(e), Purpose::kAttack), static_cast<uint32_t>(image)}, 0, m,
            noise);
  return noise.unsqueeze(0);
}

Tensor Attacker::perturb(const Tensor& x, int64_t label, const Tensor& noise,
                         double epsilon) const {
  AttackOptions options = plan_.subject.experiment.attack;
  options.epsilon = epsilon;
  const Tensor x_adv =
      smooth_adv(plan_.subject.differentiable, x.unsqueeze(0), at::full({1}, label, at::kLong),
                 noise, plan_.subject.sigma, options)[0];
  // A network with NaN logits has NaN gradients, which lead nowhere.
  return x_adv.isfinite().all().item<bool>() ? x_adv.contiguous() : x;
}

int64_t Attacker::predict(const Tensor& x, int64_t image) {
  const Subject& subject = plan_.subject;
  const Votes votes =
      sampler_.count({x,
                      subject.sigma,
                      plan_.n,
                      {make_key(certified_seed(subject.experiment), Purpose::kPrediction),
                       static_cast<uint32_t>(image)}});
  return majority(votes);
}

std::vector<AttackRow> Attacker::attack(int64_t image) {
  const Tensor x = plan_.data.image(image);
  const int64_t label = plan_.data.label(image);
  const Tensor noise = draw_noise(x, image);
  std::vector<AttackRow> rows;
  for (const double epsilon : plan_.epsilons) {
    if (interrupted()) throw Cancelled{};
    // What misled the classifier once lies in every larger ball too.
    if (!rows.empty() && !rows.back().correct()) {
      rows.push_back(rows.back());
      rows.back().epsilon = epsilon;
      continue;
    }
    const Tensor x_adv = epsilon > 0 ? perturb(x, label, noise, epsilon) : x;
    rows.push_back({image, label, epsilon, predict(x_adv, image),
                    (x_adv - x).to(at::kDouble).norm().item<double>()});
  }
  return rows;
}

}  // namespace fedsmooth::cli
