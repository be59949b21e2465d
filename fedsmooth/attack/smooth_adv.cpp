#include "fedsmooth/attack/smooth_adv.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

namespace fedsmooth {
namespace {

// The gradient of E[F_y] is E[delta w] / sigma^2 for weights w = F_y, or w = F_y minus anything
// that does not depend on delta. It points to where y is likelier; ascent of J goes the other way.
Tensor against_weighted_noise(const Tensor& noise, const Tensor& weights, double sigma) {
  const Tensor w = weights.view({weights.size(0), weights.size(1), 1, 1, 1});  // [B, m, 1, 1, 1]
  return (noise * w).mean(1) / (-sigma * sigma);
}

Tensor estimate_gradient(const Classifier& f, const Tensor& x, const Tensor& y, const Tensor& noise,
                         double sigma, Estimator estimator) {
  switch (estimator) {
    case Estimator::kStochastic:
      return stochastic_gradient(f, x, y, noise);
    case Estimator::kOnePoint:
      return one_point_gradient(f, x, y, noise, sigma);
    case Estimator::kTwoPoint:
      return two_point_gradient(f, x, y, noise, sigma);
  }
  TORCH_CHECK(false, "smooth_adv: unknown estimator");
}

}  // namespace

double step_size(const AttackOptions& o) {
  return o.step_size > 0 ? o.step_size : 2 * o.epsilon / static_cast<double>(o.steps);
}

Tensor true_class_probability(const Classifier& f, const Tensor& x, const Tensor& y,
                              const Tensor& noise) {
  const int64_t batch = noise.size(0), m = noise.size(1);
  const Tensor logits = f((x.unsqueeze(1) + noise).flatten(0, 1));  // [B m, K]
  return logits.softmax(1).gather(1, y.repeat_interleave(m).unsqueeze(1)).view({batch, m});
}

Tensor stochastic_gradient(const Classifier& f, const Tensor& x, const Tensor& y,
                           const Tensor& noise) {
  c10::AutoGradMode enable(true);
  const Tensor input = x.detach().requires_grad_(true);
  const Tensor g = true_class_probability(f, input, y, noise).mean(1).clamp_min(1e-20);
  return torch::autograd::grad({-g.log().sum()}, {input})[0];
}

Tensor one_point_gradient(const Classifier& f, const Tensor& x, const Tensor& y,
                          const Tensor& noise, double sigma) {
  c10::NoGradGuard no_grad;
  return against_weighted_noise(noise, true_class_probability(f, x, y, noise), sigma);
}

Tensor two_point_gradient(const Classifier& f, const Tensor& x, const Tensor& y,
                          const Tensor& noise, double sigma) {
  c10::NoGradGuard no_grad;
  const Tensor at_x = true_class_probability(f, x, y, at::zeros_like(noise.narrow(1, 0, 1)));
  return against_weighted_noise(noise, true_class_probability(f, x, y, noise) - at_x, sigma);
}

Tensor l2_norm(const Tensor& x) { return x.flatten(1).norm(2, 1).view({-1, 1, 1, 1}); }

Tensor project_l2(const Tensor& x_adv, const Tensor& x, double epsilon) {
  const Tensor v = x_adv - x;
  // The 1e-7 keeps rounding from leaving the ball.
  return x + v * (epsilon / (l2_norm(v) + 1e-7)).clamp_max(1.0);
}

Tensor smooth_adv(const Classifier& f, const Tensor& x, const Tensor& y, const Tensor& noise,
                  double sigma, const AttackOptions& o) {
  Tensor x_adv = x;
  for (int64_t step = 0; step < o.steps; ++step) {
    Tensor g = estimate_gradient(f, x_adv, y, noise, sigma, o.estimator);
    c10::NoGradGuard no_grad;
    // A zero gradient (a saturated network) moves nothing.
    if (o.normalize) g = g / l2_norm(g).clamp_min(1e-30);
    // Clip first: the projection then moves towards x, which is inside the box, and stays there.
    x_adv = project_l2((x_adv + step_size(o) * g).clamp(0, 1), x, o.epsilon);
  }
  return x_adv;
}

}  // namespace fedsmooth
