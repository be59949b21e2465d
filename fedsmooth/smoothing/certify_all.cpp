// CERTIFY of many images, whose votes are asked for at once, under every VoteRule.
#include <numeric>

#include "fedsmooth/smoothing/certify_steps.h"
#include "fedsmooth/smoothing/vote_budget.h"

namespace fedsmooth {
namespace {

// Images whose class is chosen, and that get fresh votes.
struct Candidate {
  size_t image;  // number in the wave
  int64_t selected;
  VoteRequest request;
};

void add_to(Votes& sum, const Votes& more) {
  sum.resize(more.size());
  for (size_t c = 0; c < more.size(); ++c) sum[c] += more[c];
}

void count_at_once(Sampler& sampler, const std::vector<Candidate>& candidates,
                   const CertifyOptions& o, std::vector<Certificate>& certificates) {
  std::vector<VoteRequest> requests;
  for (const Candidate& c : candidates) requests.push_back(c.request);
  const std::vector<Votes> votes = sampler.count_all(requests);
  for (size_t i = 0; i < candidates.size(); ++i) {
    const auto& [image, selected, request] = candidates[i];
    certificates[image] = certificate_from_counts(counts_for(selected, votes[i], request.n),
                                                  request.sigma, o.alpha, o.radius);
  }
}

// All images are looked at after the same numbers of votes; the undecided ones share the sampler's
// batches, so that a decided one makes room at once.
void count_until_decided(Sampler& sampler, const std::vector<Candidate>& candidates, double sigma,
                         const CertifyOptions& o, RadiiTest& test,
                         std::vector<Certificate>& certificates) {
  if (candidates.empty()) return;
  std::vector<Array> images;
  for (const Candidate& c : candidates) images.push_back(c.request.x);
  sampler.hold(images);
  std::vector<Votes> votes(candidates.size());
  std::vector<std::vector<Latch>> latches(candidates.size());
  std::vector<size_t> undecided(candidates.size());
  std::iota(undecided.begin(), undecided.end(), size_t{0});
  for (int64_t n = 0, next; !undecided.empty(); n = next) {
    next = next_look(n, o.n);
    std::vector<VoteRequest> more;
    for (const size_t i : undecided) {
      more.push_back(candidates[i].request);
      more.back().first = n;
      more.back().n = next - n;
      more.back().held = static_cast<int64_t>(i);
    }
    const std::vector<Votes> found = sampler.count_all(more);
    std::vector<size_t> left;
    for (size_t j = 0; j < undecided.size(); ++j) {
      const size_t i = undecided[j];
      add_to(votes[i], found[j]);
      const Counts counts = counts_for(candidates[i].selected, votes[i], next);
      if (test.look(counts.top, next, latches[i]) || next == o.n) {
        certificates[candidates[i].image] =
            certificate_from_latches(counts, latches[i], test.ladder(), sigma);
      } else {
        left.push_back(i);
      }
    }
    undecided = std::move(left);
  }
}

}  // namespace

std::vector<Certificate> certify_all(Sampler& sampler, const std::vector<LabelledImage>& images,
                                     double sigma, const CertifyOptions& o, uint64_t seed,
                                     VoteBudget* budget) {
  if (images.empty()) return {};
  if (budget == nullptr) {
    VoteBudget own(o, sigma);
    return certify_all(sampler, images, sigma, o, seed, &own);
  }
  std::vector<VoteRequest> requests;
  for (const auto& [x, index, label] : images) {
    check_subject(sampler, x);
    requests.push_back(selection_votes(x, sigma, o, seed, index));
  }
  const std::vector<Votes> chosen_by = sampler.count_all(requests);

  std::vector<Certificate> certificates(images.size());
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < images.size(); ++i) {
    const auto& [x, index, label] = images[i];
    const int64_t selected = argmax(chosen_by[i]);
    certificates[i] = certificate_from_counts({selected}, sigma, o.alpha, o.radius);
    if (o.only_correct && selected != label) continue;
    candidates.push_back({i, selected, estimation_votes(x, sigma, o, seed, index)});
    if (o.rule() == VoteRule::kPlan) {
      candidates.back().request.n =
          budget->planner.votes_for(counts_for(selected, chosen_by[i], requests[i].n));
    }
  }
  if (o.rule() == VoteRule::kRadii) {
    count_until_decided(sampler, candidates, sigma, o, budget->test, certificates);
  } else {
    count_at_once(sampler, candidates, o, certificates);
  }
  sampler.probe();
  return certificates;
}

}  // namespace fedsmooth
