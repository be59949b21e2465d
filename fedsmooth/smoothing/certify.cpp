#include "fedsmooth/smoothing/certify.h"

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/smoothing/certify_steps.h"
#include "fedsmooth/smoothing/e_process.h"
#include "fedsmooth/smoothing/plan.h"
#include "fedsmooth/smoothing/sequential.h"
#include "fedsmooth/smoothing/statistics.h"

namespace fedsmooth {
namespace {

// Noise is added in pixel space; an image that is already normalised would get the wrong sigma.
void check_pixels(const Array& x) {
  const auto inside = [](float value) { return value >= 0 && value <= 1; };  // NaN is not
  if (!std::all_of(x.floats(), x.floats() + x.count(), inside)) {
    throw Error("image: pixel values outside [0, 1]; divide bytes by 255 and do not normalise");
  }
}

void check_noise_and_level(double alpha, double sigma, const NoiseLaw& law) {
  if (!(sigma > 0 && sigma <= law.max_sigma)) {
    throw Error("sigma={}: must be positive and at most {} with {} noise", sigma, law.max_sigma,
                law.name);
  }
  if (!is_level(alpha)) throw Error("alpha={}: {}", alpha, kLevels);
}

void check_draws(const char* name, int64_t n) {
  if (n < 1 || n > kMaxVotes) throw Error("{}={}: must be between 1 and 2^32", name, n);
}

// Refuses what is not valid with given radii, and a radius that no votes could certify.
void check_radii(const CertifyOptions& o, double sigma, const NoiseLaw& law) {
  if (o.plan > 0) throw Error("plan={}: not together with given radii", o.plan);
  if (o.radius != RadiusKind::kOneSided) {
    throw Error("radius=multiclass: not with given radii, which are decided one-sided");
  }
  if (!(o.beta > 0 && o.beta < 1)) throw Error("beta={}: must be between 0 and 1", o.beta);
  const double largest = ladder_of(o.radii).back(), p = law.needed_probability(sigma, largest);
  if (!(p < 1) || successes_against(o.n, p, 1 - p, o.alpha) > o.n) {
    throw Error("radii: {} cannot be certified by {} votes with sigma={} at alpha={}", largest, o.n,
                sigma, o.alpha);
  }
}

}  // namespace

int64_t CertifyOptions::selection_votes() const {
  return plan > 0 ? std::max(n0, kPilotVotes) : n0;
}

double CertifyOptions::level() const {
  return rule() == VoteRule::kFixed ? level_of_each(alpha, malicious) : alpha;
}

int64_t argmax(const Votes& votes) {
  return std::max_element(votes.begin(), votes.end()) - votes.begin();  // the first on ties
}

int64_t most_for_another(const Votes& votes, int64_t selected) {
  int64_t most = 0;
  for (int64_t c = 0; c < static_cast<int64_t>(votes.size()); ++c) {
    if (c != selected) most = std::max(most, votes[c]);
  }
  return most;
}

void check_subject(Sampler& sampler, const Array& x) {
  sampler.check(x.sizes());
  check_pixels(x);
}

VoteRequest selection_votes(const Array& x, double sigma, const CertifyOptions& o, uint64_t seed,
                            uint32_t index) {
  return {x, sigma, o.selection_votes(), {make_key(seed, Purpose::kSelection), index}};
}

VoteRequest estimation_votes(const Array& x, double sigma, const CertifyOptions& o, uint64_t seed,
                             uint32_t index) {
  return {x, sigma, o.n, {make_key(seed, Purpose::kEstimation), index}};
}

Counts counts_for(int64_t selected, const Votes& votes, int64_t n) {
  return {selected, n, votes[selected], most_for_another(votes, selected), tally_of(votes)};
}

Counts counts_for(int64_t selected, const VotesAndGaps& tally, int64_t n, int64_t malicious) {
  Counts counts = counts_for(selected, tally.votes, n);
  if (tally.gaps.empty()) return counts;
  counts.top = copies_safe_from(tally.gaps, malicious);
  counts.gaps = tally.gaps;
  return counts;
}

std::vector<VotesAndGaps> count_for(Sampler& sampler, const std::vector<VoteRequest>& requests,
                                    const std::vector<int64_t>& selected) {
  if (sampler.groups() > 0) return sampler.count_gaps(requests, selected);
  std::vector<VotesAndGaps> tallies;
  for (Votes& votes : sampler.count_all(requests)) tallies.push_back({std::move(votes)});
  return tallies;
}

// CERTIFY: as in Cohen et al., section 3.2.2.
Certificate certify(Sampler& sampler, const Array& x, double sigma, const CertifyOptions& o,
                    uint64_t seed, uint32_t index) {
  check(!o.only_correct, "certify: only_correct needs labels; see certify_all()");
  if (o.rule() != VoteRule::kFixed || sampler.groups() > 0) {
    return certify_all(sampler, {{x, index}}, sigma, o, seed)[0];
  }
  check_malicious(o, sampler.groups());
  check_subject(sampler, x);
  const Votes counts0 = sampler.count(selection_votes(x, sigma, o, seed, index));  // n0 votes
  const int64_t selected = argmax(counts0);
  const Votes counts = sampler.count(estimation_votes(x, sigma, o, seed, index));  // n fresh ones
  sampler.probe();
  Counts found = counts_for(selected, counts, o.n);
  found.selection = tally_of(counts0);
  return certificate_from_counts(found, sigma, o.alpha, o.radius, sampler.law());
}

Certificate certificate_from_counts(const Counts& counts, double sigma, double alpha,
                                    RadiusKind radius, const NoiseLaw& law) {
  Certificate c{counts};
  if (counts.n == 0) {
    c.predict = counts.selected;
    return c;
  }
  if (radius == RadiusKind::kOneSided) {
    c.p_lower = binomial_lower_bound(counts.top, counts.n, alpha);
    // Written so that a NaN would abstain.
    if (!(c.p_lower >= 0.5)) return c;
    c.radius = law.radius(sigma, c.p_lower);
  } else {
    // The bound on the largest count is at least the bound on the true runner-up's count, so that
    // no correction for the choice of the class is needed. Each bound gets half of alpha.
    c.p_lower = binomial_lower_bound(counts.top, counts.n, alpha / 2);
    const double p_upper = std::min(binomial_upper_bound(counts.runner_up, counts.n, alpha / 2),
                                    std::nextafter(1.0 - c.p_lower, 2.0));
    if (!(c.p_lower > p_upper)) return c;
    c.radius = law.radius_between(sigma, c.p_lower, p_upper);
    if (!(c.radius > 0)) return c;
  }
  c.predict = counts.selected;
  return c;
}

// PREDICT: as in Cohen et al., section 3.2.1.
Prediction predict(Sampler& sampler, const Array& x, double sigma, int64_t n, double alpha,
                   uint64_t seed, uint32_t index) {
  check_subject(sampler, x);
  Votes counts = sampler.count({x, sigma, n, {make_key(seed, Purpose::kPrediction), index}});
  const int64_t top = argmax(counts);
  const int64_t n1 = counts[top], n2 = most_for_another(counts, top);
  const bool settled = fair_coin_p_value(n1, n1 + n2) <= alpha;
  return {settled ? top : kAbstain, std::move(counts)};
}

int64_t images_per_wave(const Sampler& sampler, int64_t votes) {
  constexpr int64_t kVotesPerProbe = 100;  // a probe takes at most a hundredth of the votes
  const int64_t worth_a_probe = (kVotesPerProbe * sampler.batch() + votes - 1) / votes;
  return std::max(worth_a_probe, sampler.requests_at_once(votes));
}

int64_t images_per_wave(const Sampler& sampler, const CertifyOptions& o) {
  if (o.rule() == VoteRule::kRadii) {
    constexpr int64_t kMostVotes = int64_t{1} << 34;  // in case that all images take them
    return std::clamp<int64_t>(kMostVotes / o.n, 1, sampler.images_at_once());
  }
  const int64_t share = o.rule() == VoteRule::kPlan ? 4 : 1;  // many images take few votes
  return images_per_wave(sampler, std::max<int64_t>(1, o.n / share));
}

void check_malicious(const CertifyOptions& o, int64_t groups) {
  if (groups == 0) {
    if (o.malicious == 0) return;
    throw Error(
        "malicious={}: this is one network; only the majority of several groups' networks is "
        "certified against malicious clients",
        o.malicious);
  }
  if (o.malicious < 0 || o.malicious > groups / 2) {
    throw Error("malicious={}: {} groups withstand at most {}", o.malicious, groups, groups / 2);
  }
  if (o.radius != RadiusKind::kOneSided) {
    throw Error("radius=multiclass: several groups are certified one-sided");
  }
}

void check_certify_options(const CertifyOptions& o, double sigma, const NoiseLaw& law) {
  check_noise_and_level(o.level(), sigma, law);
  check_draws("n0", o.n0);
  check_draws("n", o.n);
  if (o.rule() == VoteRule::kRadii) check_radii(o, sigma, law);
  if (!(o.plan >= 0) || !std::isfinite(o.plan)) {
    throw Error("plan={}: must not be negative", o.plan);
  }
  const Certificate best =
      certificate_from_counts({0, o.n, o.n, 0}, sigma, o.level(), o.radius, law);
  if (best.predict == kAbstain) {
    const double level = o.radius == RadiusKind::kOneSided ? o.level() : o.alpha / 2;
    throw Error("n={}: too few votes to certify anything at alpha={}; at least {} are needed", o.n,
                o.level(), static_cast<int64_t>(std::ceil(-std::log2(level))));
  }
}

void check_predict_options(int64_t n, double alpha, double sigma, const NoiseLaw& law) {
  check_noise_and_level(alpha, sigma, law);
  check_draws("n", n);
  if (!(fair_coin_p_value(n, n) <= alpha)) {
    throw Error("n={}: too few votes ever to answer at alpha={}; at least {} are needed", n, alpha,
                static_cast<int64_t>(std::ceil(1 - std::log2(alpha))));
  }
}

}  // namespace fedsmooth
