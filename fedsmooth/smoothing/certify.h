// Prediction and certification with the smoothed classifier
//
//     g(x) = argmax_c P[ f(x + e) = c ],    e ~ N(0, sigma^2 I)
//
// after Cohen, Rosenfeld and Kolter, ICML 2019. Both are Monte Carlo procedures: each is wrong with
// probability at most `alpha` over its own noise, and abstains rather than guess. What they say is
// true of g, the smoothed classifier, not of f.
#pragma once

#include <cstdint>

#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

/// The answer when the votes do not settle it at level `alpha`.
inline constexpr int64_t kAbstain = -1;

enum class RadiusKind {
  kOneSided,    // sigma Phi^-1(p_lower), as in Cohen's code
  kMulticlass,  // sigma / 2 (Phi^-1(p_lower) - Phi^-1(p_upper)), as in the paper's text
};

struct CertifyOptions {
  int64_t n0 = 100;      // votes that choose the candidate class
  int64_t n = 100'000;   // fresh votes that bound its probability
  double alpha = 0.001;  // failure probability per image
  RadiusKind radius = RadiusKind::kOneSided;
  /// Do not estimate where the selected class is wrong anyway: enough for certified accuracy.
  bool only_correct = false;
  /// All images get the same draws. Each certificate holds as before, but their errors are no
  /// longer independent of each other.
  bool noise_bank = false;
};

/// What was counted. Everything else in a certificate follows from it.
struct Counts {
  int64_t selected = kAbstain;  // the class that the n0 votes chose
  int64_t n = 0;                // fresh votes; 0: none were drawn, nothing is certified
  int64_t top = 0;              // of them for `selected`
  int64_t runner_up = 0;        // the most for any other class
};

struct Certificate {
  Counts counts;
  int64_t predict = kAbstain;
  double p_lower = 0.0;  // bound on P[f(x + e) = selected]; at alpha / 2 if multi-class
  double radius = 0.0;   // l2; g is constant within it
};

/// An image [C, H, W] in [0, 1], number `index` of its data set.
struct LabelledImage {
  Array x;
  uint32_t index = 0;
  int64_t label = -1;
};

/// CERTIFY for each of several images, a wave, which samplers on a GPU do better at once. The
/// certificates are those of each alone. Throws ClassifierChanged, and returns none, if the base
/// classifier's answers are others after the votes than they were when the sampler checked it.
std::vector<Certificate> certify_all(Sampler& sampler, const std::vector<LabelledImage>& images,
                                     double sigma, const CertifyOptions& options, uint64_t seed);

/// How many images make a wave: as many as the sampler does best at once, and enough that probing
/// the classifier takes at most 1% of their votes, `votes` for each.
int64_t images_per_wave(const Sampler& sampler, int64_t votes);

/// Paper: CERTIFY. `x` is one image [C, H, W] in [0, 1], number `index` of its data set.
Certificate certify(Sampler& sampler, const Array& x, double sigma, const CertifyOptions& options,
                    uint64_t seed, uint32_t index);

/// The second half of CERTIFY: the certificate that given counts support.
Certificate certificate_from_counts(const Counts& counts, double sigma, double alpha,
                                    RadiusKind radius);

struct Prediction {
  int64_t predict = kAbstain;
  Votes votes;
};

/// Paper: PREDICT, from `n` votes.
Prediction predict(Sampler& sampler, const Array& x, double sigma, int64_t n, double alpha,
                   uint64_t seed, uint32_t index);

/// Refuse parameters under which no votes could ever end in an answer.
void check_certify_options(const CertifyOptions& options, double sigma);
void check_predict_options(int64_t n, double alpha, double sigma);

}  // namespace fedsmooth
