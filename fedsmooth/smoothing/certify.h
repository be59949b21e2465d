// Prediction and certification with the smoothed classifier
//
//     g(x) = argmax_c P[ f(x + e) = c ],    e ~ N(0, sigma^2 I) or another noise law
//
// after Cohen, Rosenfeld and Kolter, ICML 2019. Both are Monte Carlo procedures: each is wrong with
// probability at most `alpha` over its own noise, and abstains rather than guess. What they say is
// true of g, the smoothed classifier, not of f.
#pragma once

#include <cstdint>
#include <vector>

#include "fedsmooth/smoothing/sampler.h"
#include "fedsmooth/smoothing/tally.h"

namespace fedsmooth {

/// The answer when the votes do not settle it at level `alpha`.
inline constexpr int64_t kAbstain = -1;

enum class RadiusKind {
  kOneSided,    // sigma Phi^-1(p_lower), as in Cohen's code
  kMulticlass,  // sigma / 2 (Phi^-1(p_lower) - Phi^-1(p_upper)), as in the paper's text
};

/// A sample's number has 32 bits: more votes would repeat draws.
inline constexpr int64_t kMaxVotes = int64_t{1} << 32;

/// How many fresh votes an image gets.
enum class VoteRule {
  kFixed,  // n
  kRadii,  // until given radii are decided, at most n; see sequential.h
  kPlan,   // as many as a pilot of n0 votes finds worth drawing, at most n; see plan.h
};

struct CertifyOptions {
  int64_t n0 = 100;      // votes that choose the candidate class
  int64_t n = 100'000;   // fresh votes that bound its probability, or the most of them
  double alpha = 0.001;  // failure probability per image
  RadiusKind radius = RadiusKind::kOneSided;
  /// Do not estimate where the selected class is wrong anyway: enough for certified accuracy.
  bool only_correct = false;
  /// If not empty: decide these radii, and 0, and stop as soon as possible.
  std::vector<double> radii = {};
  double beta = 0.001;  // probability of giving up one of them that could be certified

  /// If positive: the loss of radius that is accepted for fewer votes. n0 is then 1000 or more.
  double plan = 0;

  /// With several groups: the number of malicious clients that radii are against. With a fixed
  /// number of votes all smaller numbers are claimed too, at once.
  int64_t malicious = 0;

  VoteRule rule() const {
    if (!radii.empty()) return VoteRule::kRadii;
    return plan > 0 ? VoteRule::kPlan : VoteRule::kFixed;
  }
  /// Votes that choose the class: n0, or a pilot.
  int64_t selection_votes() const;
  /// The failure probability of one claim, about one image and one number of malicious clients.
  double level() const;
};

/// What was counted. Everything else in a certificate follows from it.
struct Counts {
  int64_t selected = kAbstain;  // the class that the n0 votes chose
  int64_t n = 0;                // fresh votes; 0: none were drawn, nothing is certified
  int64_t top = 0;              // of them for `selected`
  int64_t runner_up = 0;        // the most for any other class
  /// The n votes and the n0 votes of every class. Empty if no class got any, and in counts from
  /// tables of earlier versions. Under VoteRule::kRadii the votes up to where they were stopped.
  Tally votes = {}, selection = {};
  /// Of several groups, see group_votes.h: the gaps of `selected` on the n copies, and `top` are
  /// those that are safe from as many malicious clients as the certificate is against. Empty for
  /// one network, and under VoteRule::kRadii, where n depends on the votes.
  Gaps gaps = {};
};

/// The counts at which one of given radii was certified, as votes came in.
struct Latch {
  int64_t top = 0, n = 0;
};

struct Certificate {
  Counts counts;
  int64_t predict = kAbstain;
  double p_lower = 0.0;  // bound on P[f(x + e) = selected]; at alpha / 2 if multi-class
  double radius = 0.0;   // in the norm of the noise; g is constant within it
  /// Under VoteRule::kRadii: of the certified ones of the given radii, in ascending order.
  std::vector<Latch> latches = {};
};

/// An image [C, H, W] in [0, 1], number `index` of its data set.
struct LabelledImage {
  Array x;
  uint32_t index = 0;
  int64_t label = -1;
};

struct VoteBudget;

/// CERTIFY for each of several images, a wave, which samplers on a GPU do better at once. The
/// certificates are those of each alone. Throws ClassifierChanged, and returns none, if the base
/// classifier's answers are others after the votes than they were when the sampler checked it.
/// Callers with many waves pass one `budget`, of the same options and sigma, to save time.
std::vector<Certificate> certify_all(Sampler& sampler, const std::vector<LabelledImage>& images,
                                     double sigma, const CertifyOptions& options, uint64_t seed,
                                     VoteBudget* budget = nullptr);

/// Under VoteRule::kRadii: more votes for images whose radii were not decided by `earlier` ones, of
/// which all have the same number, below options.n. The draws are counted from the first on, as
/// tables of earlier versions do not keep the votes of every class; an Error if they are not what
/// they were.
std::vector<Certificate> continue_all(Sampler& sampler, const std::vector<LabelledImage>& images,
                                      const std::vector<Certificate>& earlier, double sigma,
                                      const CertifyOptions& options, uint64_t seed,
                                      VoteBudget& budget);

/// How many images make a wave: as many as the sampler does best at once, and enough that probing
/// the classifier takes at most 1% of their votes, `votes` for each.
int64_t images_per_wave(const Sampler& sampler, int64_t votes);
/// The same under the options' rule; votes that are not known beforehand are taken to be few.
int64_t images_per_wave(const Sampler& sampler, const CertifyOptions& options);

/// CERTIFY of Cohen et al. 2019. `x` is one image [C, H, W] in [0, 1], number `index` of its data
/// set.
Certificate certify(Sampler& sampler, const Array& x, double sigma, const CertifyOptions& options,
                    uint64_t seed, uint32_t index);

/// The second half of CERTIFY: the certificate that given counts support, of votes under `law`.
Certificate certificate_from_counts(const Counts& counts, double sigma, double alpha,
                                    RadiusKind radius, const NoiseLaw& law);

struct Prediction {
  int64_t predict = kAbstain;
  Votes votes;
};

/// PREDICT of Cohen et al. 2019, from `n` votes.
Prediction predict(Sampler& sampler, const Array& x, double sigma, int64_t n, double alpha,
                   uint64_t seed, uint32_t index);

/// Refuses what votes of f, one network (groups = 0) or the majority of several, cannot certify.
void check_malicious(const CertifyOptions& options, int64_t groups);

/// Refuse parameters under which no votes under `law` could ever end in an answer.
void check_certify_options(const CertifyOptions& options, double sigma, const NoiseLaw& law);
void check_predict_options(int64_t n, double alpha, double sigma, const NoiseLaw& law);

}  // namespace fedsmooth
