#include "fedsmooth/attack/attack_smoothed.h"

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/softmax.h"

namespace fedsmooth {
namespace {

constexpr double kSmallestProbability = 1e-20;

// The gradient of E[F_y] is E[delta w] / sigma^2 for weights w = F_y, or w = F_y minus anything
// that does not depend on delta. It points to where y is likelier; ascent of J goes the other way.
// Noise is [B, m, C, H, W], the weights are [B, m].
Array against_weighted_noise(const Array& noise, const Array& weights, double sigma) {
  const int64_t batch = noise.size(0), m = noise.size(1);
  Array gradient({batch, noise.size(2), noise.size(3), noise.size(4)});
  const int64_t size = gradient.count() / batch;
  const double scale = 1 / (-sigma * sigma * static_cast<double>(m));
  for (int64_t b = 0; b < batch; ++b) {
    float* out = gradient.floats() + b * size;
    for (int64_t i = 0; i < m; ++i) {
      const auto weight = static_cast<float>(scale * weights.floats()[b * m + i]);
      const float* delta = noise.floats() + (b * m + i) * size;
      for (int64_t j = 0; j < size; ++j) out[j] += weight * delta[j];
    }
  }
  return gradient;
}

Array estimate_gradient(const DifferentiableClassifier& f, const Array& x, const Labels& y,
                        const Array& noise, double sigma, Estimator estimator) {
  switch (estimator) {
    case Estimator::kStochastic:
      return stochastic_gradient(f, x, y, noise);
    case Estimator::kOnePoint:
      return one_point_gradient(f.logits, x, y, noise, sigma);
    case Estimator::kTwoPoint:
      return two_point_gradient(f.logits, x, y, noise, sigma);
  }
  throw Bug("attack_smoothed: unknown estimator");
}

// The sum over the m copies of each image: [B m, C, H, W] to [B, C, H, W].
Array sum_copies(const Array& copies, int64_t m) {
  Array sums({copies.size(0) / m, copies.size(1), copies.size(2), copies.size(3)});
  const int64_t size = sums.count() / sums.size(0);
  for (int64_t row = 0; row < copies.size(0); ++row) {
    const float* from = copies.floats() + row * size;
    float* to = sums.floats() + row / m * size;
    for (int64_t j = 0; j < size; ++j) to[j] += from[j];
  }
  return sums;
}

// clip(x + factor_b g, [0, 1]) for each image b.
Array step_in_box(const Array& x, const Array& g, const std::vector<double>& factors) {
  Array moved(x.sizes());
  const int64_t size = x.count() / x.size(0);
  for (int64_t b = 0; b < x.size(0); ++b) {
    const auto factor = static_cast<float>(factors[b]);
    const float *from = x.floats() + b * size, *along = g.floats() + b * size;
    float* to = moved.floats() + b * size;
    for (int64_t j = 0; j < size; ++j) to[j] = std::clamp(from[j] + factor * along[j], 0.0f, 1.0f);
  }
  return moved;
}

}  // namespace

double step_size(const AttackOptions& o) {
  return o.step_size > 0 ? o.step_size : 2 * o.epsilon / static_cast<double>(o.steps);
}

Array noisy_copies(const Array& x, const Array& noise) {
  const int64_t batch = noise.size(0), m = noise.size(1), size = x.count() / x.size(0);
  Array copies({batch * m, noise.size(2), noise.size(3), noise.size(4)});
  for (int64_t row = 0; row < batch * m; ++row) {
    const float *clean = x.floats() + row / m * size, *delta = noise.floats() + row * size;
    float* out = copies.floats() + row * size;
    for (int64_t j = 0; j < size; ++j) out[j] = clean[j] + delta[j];
  }
  return copies;
}

Array true_class_probability(const Classifier& f, const Array& x, const Labels& y,
                             const Array& noise) {
  const int64_t batch = noise.size(0), m = noise.size(1);
  const Array logits = f(noisy_copies(x, noise));  // [B m, K]
  const int64_t classes = logits.size(1);
  Array p({batch, m});
  for (int64_t row = 0; row < batch * m; ++row) {
    const std::vector<double> all = softmax(logits.floats() + row * classes, classes);
    p.floats()[row] = static_cast<float>(all[y[row / m]]);
  }
  return p;
}

// J = -log g, g = 1/m sum_i p_iy, p_i = softmax of copy i's logits z_i:
// dJ/dz_ik = -p_iy (1[k = y] - p_ik) / (m g).
Array stochastic_gradient(const DifferentiableClassifier& f, const Array& x, const Labels& y,
                          const Array& noise) {
  const int64_t batch = noise.size(0), m = noise.size(1);
  const Array logits = f.logits(noisy_copies(x, noise));  // [B m, K]
  const int64_t classes = logits.size(1);
  Array gradient(logits.sizes());
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<std::vector<double>> p;
    double g = 0;
    for (int64_t i = 0; i < m; ++i) {
      p.push_back(softmax(logits.floats() + (b * m + i) * classes, classes));
      g += p.back()[y[b]] / static_cast<double>(m);
    }
    if (!(g >= kSmallestProbability)) continue;  // no direction is left
    for (int64_t i = 0; i < m; ++i) {
      float* out = gradient.floats() + (b * m + i) * classes;
      const double scale = -p[i][y[b]] / (static_cast<double>(m) * g);
      for (int64_t k = 0; k < classes; ++k) {
        out[k] = static_cast<float>(scale * ((k == y[b] ? 1 : 0) - p[i][k]));
      }
    }
  }
  return sum_copies(f.backward(gradient), m);
}

Array one_point_gradient(const Classifier& f, const Array& x, const Labels& y, const Array& noise,
                         double sigma) {
  return against_weighted_noise(noise, true_class_probability(f, x, y, noise), sigma);
}

Array two_point_gradient(const Classifier& f, const Array& x, const Labels& y, const Array& noise,
                         double sigma) {
  const int64_t m = noise.size(1);
  const Array none({noise.size(0), 1, noise.size(2), noise.size(3), noise.size(4)});
  const Array at_x = true_class_probability(f, x, y, none);  // [B, 1]
  Array weights = true_class_probability(f, x, y, noise);
  for (int64_t i = 0; i < weights.count(); ++i) weights.floats()[i] -= at_x.floats()[i / m];
  return against_weighted_noise(noise, weights, sigma);
}

std::vector<double> l2_norms(const Array& x) {
  const int64_t size = x.count() / x.size(0);
  std::vector<double> norms;
  for (int64_t b = 0; b < x.size(0); ++b) {
    const float* values = x.floats() + b * size;
    double sum = 0;
    for (int64_t j = 0; j < size; ++j) sum += double{values[j]} * double{values[j]};
    norms.push_back(std::sqrt(sum));
  }
  return norms;
}

Array project_l2(const Array& x_adv, const Array& x, double epsilon) {
  Array v(x.sizes());
  for (int64_t i = 0; i < v.count(); ++i) v.floats()[i] = x_adv.floats()[i] - x.floats()[i];
  const int64_t size = x.count() / x.size(0);
  const std::vector<double> norms = l2_norms(v);
  for (int64_t b = 0; b < x.size(0); ++b) {
    // The 1e-7 keeps rounding from leaving the ball.
    const auto scale = static_cast<float>(std::min(1.0, epsilon / (norms[b] + 1e-7)));
    const float* centre = x.floats() + b * size;
    float* to = v.floats() + b * size;
    for (int64_t j = 0; j < size; ++j) to[j] = centre[j] + to[j] * scale;
  }
  return v;
}

Array attack_smoothed(const DifferentiableClassifier& f, const Array& x, const Labels& y,
                      const Array& noise, double sigma, const AttackOptions& o) {
  Array x_adv = x;
  for (int64_t step = 0; step < o.steps; ++step) {
    const Array g = estimate_gradient(f, x_adv, y, noise, sigma, o.estimator);
    std::vector<double> factors(x.size(0), step_size(o));
    if (o.normalize) {
      const std::vector<double> norms = l2_norms(g);
      // A zero gradient (a saturated network) moves nothing.
      for (size_t b = 0; b < factors.size(); ++b) factors[b] /= std::max(norms[b], 1e-30);
    }
    // Clip first: the projection then moves towards x, which is inside the box, and stays there.
    x_adv = project_l2(step_in_box(x_adv, g, factors), x, o.epsilon);
  }
  return x_adv;
}

}  // namespace fedsmooth
