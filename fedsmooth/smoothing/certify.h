// Prediction and certification with the smoothed classifier
//
//     g(x) = argmax_c P[ f(x + e) = c ],    e ~ N(0, sigma^2 I) or another noise law
//
// after Cohen, Rosenfeld and Kolter, ICML 2019. Both are Monte Carlo procedures: each is wrong with
// probability at most `alpha` over its own noise, and abstains where the votes prove nothing. Their
// statements are about g, the smoothed classifier, not about f.
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

/// The most votes for an image: a sample's number has 32 bits, so more votes would repeat draws.
inline constexpr int64_t kMaxVotes = int64_t{1} << 32;

/// What decides the number of fresh votes of an image.
enum class VoteRule {
  kFixed,  // n votes
  kRadii,  // votes until given radii are decided, at most n; see sequential.h
  kPlan,   // a number that a pilot of n0 votes chooses, at most n; see plan.h
};

struct CertifyOptions {
  int64_t n0 = 100;      // votes that choose the candidate class
  int64_t n = 100'000;   // fresh votes that bound its probability, or their maximum
  double alpha = 0.001;  // failure probability per image
  RadiusKind radius = RadiusKind::kOneSided;
  /// Draw no fresh votes where the selected class is wrong. Certified accuracy does not need them.
  bool only_correct = false;
  /// If not empty: decide whether these radii, and 0, hold, and stop as soon as they are decided.
  std::vector<double> radii = {};
  double beta = 0.001;  // probability of giving up a radius that could be certified

  /// If positive: the loss of radius, in the norm of the noise, that is accepted in nine of ten
  /// images for fewer votes. n0 is then 1000 or more.
  double plan = 0;

  /// With several groups: the number of malicious clients that radii allow for. With a fixed number
  /// of votes, all smaller numbers are claimed at the same time.
  int64_t malicious = 0;

  VoteRule rule() const {
    if (!radii.empty()) return VoteRule::kRadii;
    return plan > 0 ? VoteRule::kPlan : VoteRule::kFixed;
  }
  /// Returns the number of votes that choose the class: n0, or the size of the pilot.
  int64_t selection_votes() const;
  /// Returns the failure probability of one claim, about one image and one number of malicious
  /// clients.
  double level() const;
};

/// The counts of votes, from which everything else in a certificate follows.
struct Counts {
  int64_t selected = kAbstain;  // the class that the n0 votes chose
  int64_t n = 0;                // fresh votes; 0: none were drawn, nothing is certified
  int64_t top = 0;              // fresh votes for `selected`
  int64_t runner_up = 0;        // the most fresh votes for any other class
  /// The fresh votes and the n0 votes by class. Empty if no class got any, and in counts from
  /// tables of earlier versions. Under VoteRule::kRadii, the votes that were counted before the
  /// stop.
  Tally votes = {}, selection = {};
  /// For several groups, see group_votes.h: the gaps of `selected` on the n copies. `top` then
  /// counts the copies whose gap is safe from the number of malicious clients that the certificate
  /// allows for. Empty for one network, and under VoteRule::kRadii, where n depends on the votes.
  Gaps gaps = {};
};

/// The counts at the moment when one of the given radii was certified.
struct Latch {
  int64_t top = 0, n = 0;
};

struct Certificate {
  Counts counts;
  int64_t predict = kAbstain;
  double p_lower = 0.0;  // bound on P[f(x + e) = selected]; at alpha / 2 if multiclass
  double radius = 0.0;   // in the norm of the noise; g is constant within it
  /// Under VoteRule::kRadii: one latch for each certified radius, in ascending order of radius.
  std::vector<Latch> latches = {};
};

/// An image [C, H, W] in [0, 1], number `index` of its data set.
struct LabelledImage {
  Array x;
  uint32_t index = 0;
  int64_t label = -1;
};

struct VoteBudget;

/// Certifies several images together (a wave), which is faster for samplers on a GPU. Each
/// certificate equals that of certify() for the image alone. If the base classifier's answers after
/// the votes differ from those when the sampler checked it, throws ClassifierChanged and returns
/// nothing. Callers with many waves save time by passing one `budget`, made for the same options
/// and sigma.
std::vector<Certificate> certify_all(Sampler& sampler, const std::vector<LabelledImage>& images,
                                     double sigma, const CertifyOptions& options, uint64_t seed,
                                     VoteBudget* budget = nullptr);

/// Under VoteRule::kRadii: draws more votes for images whose radii `earlier` left undecided. All
/// earlier certificates must have the same number of votes, below options.n. Counts all draws again
/// from the first, because tables of earlier versions do not keep the votes of every class. Throws
/// an Error if the earlier counts come out differently.
std::vector<Certificate> continue_all(Sampler& sampler, const std::vector<LabelledImage>& images,
                                      const std::vector<Certificate>& earlier, double sigma,
                                      const CertifyOptions& options, uint64_t seed,
                                      VoteBudget& budget);

/// Returns how many images make a wave: the number that the sampler handles best at once, or more,
/// so that probing the classifier takes at most 1% of the votes, with `votes` for each image.
int64_t images_per_wave(const Sampler& sampler, int64_t votes);
/// Returns how many images make a wave under the options' rule. Where the number of votes is not
/// known beforehand, a small one is assumed.
int64_t images_per_wave(const Sampler& sampler, const CertifyOptions& options);

/// Certifies one image by CERTIFY of Cohen et al. 2019. `x` is the image [C, H, W] in [0, 1],
/// number `index` of its data set; `seed` and `index` key its noise.
Certificate certify(Sampler& sampler, const Array& x, double sigma, const CertifyOptions& options,
                    uint64_t seed, uint32_t index);

/// Does the second half of CERTIFY: returns the certificate that the counts of votes under `law`
/// support.
Certificate certificate_from_counts(const Counts& counts, double sigma, double alpha,
                                    RadiusKind radius, const NoiseLaw& law);

struct Prediction {
  int64_t predict = kAbstain;
  Votes votes;
};

/// Answers for one image by PREDICT of Cohen et al. 2019, from `n` votes.
Prediction predict(Sampler& sampler, const Array& x, double sigma, int64_t n, double alpha,
                   uint64_t seed, uint32_t index);

/// Throws an Error for a number of malicious clients, or a kind of radius, that cannot be certified
/// for the majority of `groups` networks (0: one network).
void check_malicious(const CertifyOptions& options, int64_t groups);

/// Throw an Error for parameters under which no votes under `law` could ever give an answer.
void check_certify_options(const CertifyOptions& options, double sigma, const NoiseLaw& law);
void check_predict_options(int64_t n, double alpha, double sigma, const NoiseLaw& law);

}  // namespace fedsmooth
