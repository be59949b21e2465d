// Conformal sets that hold under perturbations, from one noisy pass per image. With the score
// s(z, y) = -log softmax_y of f at z = x + noise, and q the ceil((n + 1) b)-th smallest score of
// the labels of n calibration images, one noise each, the set C(z) = {y : s(z, y) <= q} holds the
// label of a new image with probability at least `coverage`, also if the image was moved by any e
// with |e| <= epsilon that does not know the noise, for
//
//     b = Phi(Phi^-1(coverage) + epsilon / sigma)    for noise ~ N(0, sigma^2 I),
//
// and in general for the probability b that an event must have to keep at least `coverage` after a
// shift by epsilon, which the noise law knows (NoiseLaw::shifted_level). The probability is over
// the calibration images, the new image and all noise. See docs/method.md.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "fedsmooth/base/stop.h"
#include "fedsmooth/smoothing/certify.h"

namespace fedsmooth {

/// Returns b under `law`, rounded up. Throws an Error unless 1/2 <= coverage < 1, epsilon >= 0,
/// sigma is positive and at most the law's largest, b < 1, and the law knows b.
double conformal_level(double coverage, double epsilon, double sigma, const NoiseLaw& law);

/// Returns ceil((n + 1) level), rounded in the safe direction: it may be one too large.
int64_t conformal_rank(int64_t n, double level);

/// Returns the smallest number n of calibration images for which conformal_rank(n, level) <= n.
int64_t needed_images(double level);

/// Returns the threshold q. If there are too few scores, throws an Error that says how many are
/// needed.
double conformal_quantile(std::vector<double> scores, double level);

/// Returns -log softmax of each of the K logits, or infinity for each if a logit is not finite. The
/// score 1 - softmax would give the same sets, but many of its values would be rounded to 1.
std::vector<double> conformal_scores(const float* logits, int64_t classes);

/// The uses of random numbers. Each has a key of its own, so that calibration, its test and answers
/// share no noise, and the choice of calibration images does not depend on any noise.
enum class ConformalDraw : uint64_t { kCalibration, kTest, kAnswer, kChoice };
Key conformal_key(uint64_t seed, ConformalDraw draw);

/// Computes the scores of every class for one noisy copy of each of `count` images, with the noise
/// of sample 0 of the stream {key, index}. `image(i)` returns the ith image, `take(i, scores)` gets
/// its scores. Both are called from up to `threads` threads, in any order. Throws ClassifierChanged
/// if f's answers change meanwhile, and Interrupted once `stopped` returns true. Returns f's
/// fingerprint, which is empty if there are no images.
std::string one_pass_scores(const BaseClassifier& f, const NoiseLaw& law, double sigma, Key key,
                            int64_t count, const std::function<LabelledImage(int64_t i)>& image,
                            const std::function<void(int64_t i, std::vector<double> scores)>& take,
                            int threads, const Stop& stopped);

}  // namespace fedsmooth
