// The attack of SmoothAdv: adversarial examples against the smoothed soft classifier
//
//     G(x) = E_delta[ F(x + delta) ],   delta ~ N(0, sigma^2 I),   F = softmax of the logits,
//
// by projected gradient ascent on J(x) = -log G(x)_y within an l2 ball (paper, section 2.1). The
// gradient of J, or of G_y, is estimated from m noises, which the caller draws once for all steps.
// Only gradients with respect to the input are computed. All functions are pure; a classifier with
// gradients serves one thread at a time.
#pragma once

#include <vector>

#include "fedsmooth/base/classifier.h"

namespace fedsmooth {

enum class Estimator {
  kStochastic,  // eq. 3: backpropagation through the mean of m probabilities
  kOnePoint,    // eq. 4: mean of delta_i F(x + delta_i)_y / sigma^2, forward passes only
  kTwoPoint,    // as kOnePoint with F(x + delta_i)_y - F(x)_y: equal mean, less variance
};

struct AttackOptions {
  Estimator estimator = Estimator::kStochastic;
  int64_t steps = 2;
  double epsilon = 0.5;         // l2 radius of the ball, in units of the [0, 1] image
  double step_size = 0.0;       // 0: 2 epsilon / steps
  bool normalize = true;        // divide each image's gradient by its l2 norm
  int64_t warmup_rounds = 0;    // training: epsilon grows to its value over this many rounds
  bool measure_cosine = false;  // training: compare the one-point with the true gradient

  bool operator==(const AttackOptions&) const = default;
};

using Labels = std::vector<int64_t>;

/// Returns the length of a step of the ascent: options.step_size, or 2 epsilon / steps if that is
/// 0.
double step_size(const AttackOptions& options);

/// Returns x + noise: copies [B m, C, H, W] of images [B, C, H, W] with noise [B, m, C, H, W].
Array noisy_copies(const Array& x, const Array& noise);

/// Returns F(x + noise_i)_y as [B, m], for x [B, C, H, W], y [B] and noise [B, m, C, H, W].
Array true_class_probability(const Classifier& f, const Array& x, const Labels& y,
                             const Array& noise);

/// Each of these estimates an ascent direction of J at x, [B, C, H, W], by the estimator in its
/// name.
Array stochastic_gradient(const DifferentiableClassifier& f, const Array& x, const Labels& y,
                          const Array& noise);
Array one_point_gradient(const Classifier& f, const Array& x, const Labels& y, const Array& noise,
                         double sigma);
Array two_point_gradient(const Classifier& f, const Array& x, const Labels& y, const Array& noise,
                         double sigma);

/// Returns the l2 norm of each entry of the first axis.
std::vector<double> l2_norms(const Array& x);

/// Projects each image of x_adv onto the l2 ball of radius epsilon around the image in x.
Array project_l2(const Array& x_adv, const Array& x, double epsilon);

/// Returns adversarial examples for images x [B, C, H, W] in [0, 1] with labels y. They are within
/// epsilon of x and in [0, 1]. `noise` [B, m, C, H, W] has standard deviation sigma; noise of zeros
/// attacks F itself.
Array attack_smoothed(const DifferentiableClassifier& f, const Array& x, const Labels& y,
                      const Array& noise, double sigma, const AttackOptions& options);

}  // namespace fedsmooth
