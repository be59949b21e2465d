// The attack of SmoothAdv: adversarial examples against the smoothed soft classifier
//
//     G(x) = E_delta[ F(x + delta) ],   delta ~ N(0, sigma^2 I),   F = softmax of the logits,
//
// by projected gradient ascent on J(x) = -log G(x)_y within an l2 ball (paper, section 2.1). The
// gradient of J, or of G_y, is estimated from m noises that the caller draws once and that serve
// all steps. Only gradients with respect to the input are computed.
#pragma once

#include <vector>

#include "fedsmooth/base/classifier.h"

namespace fedsmooth {

enum class Estimator {
  kStochastic,  // eq. 3: backpropagation through the mean of m probabilities
  kOnePoint,    // eq. 4: mean of delta_i F(x + delta_i)_y / sigma^2, forward passes only
  kTwoPoint,    // the same with F(x + delta_i)_y - F(x)_y: equal mean, less variance
};

struct AttackOptions {
  Estimator estimator = Estimator::kStochastic;
  int64_t steps = 2;
  double epsilon = 0.5;         // l2, in units of the [0, 1] image: the paper's 128/256
  double step_size = 0.0;       // 0: 2 epsilon / steps
  bool normalize = true;        // unit gradient per image
  int64_t warmup_rounds = 0;    // training: epsilon grows to its value over this many rounds
  bool measure_cosine = false;  // training: compare the one-point with the true gradient

  bool operator==(const AttackOptions&) const = default;
};

using Labels = std::vector<int64_t>;

/// The step of the ascent: 2 epsilon / steps unless it is given.
double step_size(const AttackOptions& options);

/// x + noise: images [B, C, H, W] and noise [B, m, C, H, W] to copies [B m, C, H, W].
Array noisy_copies(const Array& x, const Array& noise);

/// [F(x + noise_i)_y] as [B, m]: x [B, C, H, W], y [B], noise [B, m, C, H, W].
Array true_class_probability(const Classifier& f, const Array& x, const Labels& y,
                             const Array& noise);

/// Ascent directions of J at x, [B, C, H, W].
Array stochastic_gradient(const DifferentiableClassifier& f, const Array& x, const Labels& y,
                          const Array& noise);
Array one_point_gradient(const Classifier& f, const Array& x, const Labels& y, const Array& noise,
                         double sigma);
Array two_point_gradient(const Classifier& f, const Array& x, const Labels& y, const Array& noise,
                         double sigma);

/// The l2 norm of each entry of the first axis.
std::vector<double> l2_norms(const Array& x);

/// The nearest points to `x_adv` with |x_adv - x| <= epsilon, per image.
Array project_l2(const Array& x_adv, const Array& x, double epsilon);

/// Adversarial examples for x [B, C, H, W] in [0, 1] with labels y: in the ball and in [0, 1].
/// `noise` [B, m, C, H, W] has standard deviation sigma; noise of zeros attacks F itself.
Array attack_smoothed(const DifferentiableClassifier& f, const Array& x, const Labels& y,
                      const Array& noise, double sigma, const AttackOptions& options);

}  // namespace fedsmooth
