// CERTIFY of many images, whose votes are asked for at once, under every VoteRule.
#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
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

std::vector<int64_t> selected_by(const std::vector<Candidate>& candidates) {
  std::vector<int64_t> selected;
  for (const Candidate& c : candidates) selected.push_back(c.selected);
  return selected;
}

void count_at_once(Sampler& sampler, const std::vector<Candidate>& candidates,
                   const CertifyOptions& o, std::vector<Certificate>& certificates) {
  std::vector<VoteRequest> requests;
  for (const Candidate& c : candidates) requests.push_back(c.request);
  const std::vector<VotesAndGaps> votes = count_for(sampler, requests, selected_by(candidates));
  for (size_t i = 0; i < candidates.size(); ++i) {
    const auto& [image, selected, request] = candidates[i];
    certificates[image] =
        certificate_from_counts(counts_for(selected, votes[i], request.n, o.malicious),
                                request.sigma, o.level(), o.radius, sampler.law());
  }
}

// What a pilot says of the votes to come. The class whose gaps are to be counted is known only
// after the pilot, whose draws are then evaluated again.
VotesAndGaps pilot_of(Sampler& sampler, const VoteRequest& request, const Votes& votes,
                      int64_t selected, int64_t malicious) {
  if (malicious == 0) return {votes};
  return sampler.count_gaps({request}, {selected})[0];
}

// An image while its radii are decided.
struct Climber {
  const Candidate* candidate;
  VotesAndGaps votes = {};
  std::vector<Latch> latches = {};

  /// Where n depends on the votes, gaps prove nothing for other numbers of malicious clients.
  Counts counts(int64_t n, int64_t malicious) const {
    Counts found = counts_for(candidate->selected, votes, n, malicious);
    found.gaps.clear();
    return found;
  }
};

// Votes from number `first` up to `end` for each climber.
void add_votes(Sampler& sampler, std::vector<Climber>& climbers, std::vector<VoteRequest>& requests,
               int64_t first, int64_t end) {
  for (VoteRequest& r : requests) {
    r.first = first;
    r.n = end - first;
  }
  std::vector<int64_t> selected;
  for (const Climber& climber : climbers) selected.push_back(climber.candidate->selected);
  const std::vector<VotesAndGaps> found = count_for(sampler, requests, selected);
  for (size_t i = 0; i < climbers.size(); ++i) {
    VotesAndGaps& votes = climbers[i].votes;
    if (votes.votes.empty()) {
      votes = found[i];
    } else {
      votes.add(found[i]);
    }
  }
}

// The requests of climbers, in the same order.
std::vector<VoteRequest> requests_of(const std::vector<Climber>& climbers) {
  std::vector<VoteRequest> requests;
  for (const Climber& climber : climbers) requests.push_back(climber.candidate->request);
  return requests;
}

// All images, which have n votes, are looked at after the same numbers of votes; the undecided ones
// share the sampler's batches, so that a decided one makes room at once.
void count_until_decided(Sampler& sampler, std::vector<Climber> climbers,
                         std::vector<VoteRequest> requests, int64_t n, double sigma,
                         const CertifyOptions& o, RadiiTest& test,
                         std::vector<Certificate>& certificates) {
  for (int64_t next; !climbers.empty(); n = next) {
    next = next_look(n, o.n);
    add_votes(sampler, climbers, requests, n, next);
    size_t left = 0;
    for (size_t i = 0; i < climbers.size(); ++i) {
      Climber& climber = climbers[i];
      const Counts counts = climber.counts(next, o.malicious);
      if (test.look(counts.top, next, climber.latches) || next == o.n) {
        certificates[climber.candidate->image] =
            certificate_from_latches(counts, climber.latches, test.ladder(), sigma, sampler.law());
      } else if (left++ < i) {
        climbers[left - 1] = std::move(climber);
        requests[left - 1] = std::move(requests[i]);
      }
    }
    climbers.resize(left);
    requests.resize(left);
  }
}

}  // namespace

std::vector<Certificate> certify_all(Sampler& sampler, const std::vector<LabelledImage>& images,
                                     double sigma, const CertifyOptions& o, uint64_t seed,
                                     VoteBudget* budget) {
  if (images.empty()) return {};
  check_malicious(o, sampler.groups());
  if (budget == nullptr) {
    VoteBudget own(o, sigma, sampler.law());
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
    certificates[i] =
        certificate_from_counts({selected}, sigma, o.level(), o.radius, sampler.law());
    if (o.only_correct && selected != label) continue;
    candidates.push_back({i, selected, estimation_votes(x, sigma, o, seed, index)});
    if (o.rule() == VoteRule::kPlan) {
      const VotesAndGaps pilot =
          pilot_of(sampler, requests[i], chosen_by[i], selected, o.malicious);
      candidates.back().request.n =
          budget->planner.votes_for(counts_for(selected, pilot, requests[i].n, o.malicious));
    }
  }
  if (o.rule() == VoteRule::kRadii) {
    std::vector<Climber> climbers;
    for (const Candidate& c : candidates) climbers.push_back({&c});
    std::vector<VoteRequest> more = requests_of(climbers);
    count_until_decided(sampler, std::move(climbers), std::move(more), 0, sigma, o, budget->test,
                        certificates);
  } else {
    count_at_once(sampler, candidates, o, certificates);
  }
  sampler.probe();
  for (size_t i = 0; i < images.size(); ++i) {
    certificates[i].counts.selection = tally_of(chosen_by[i]);
  }
  return certificates;
}

std::vector<Certificate> continue_all(Sampler& sampler, const std::vector<LabelledImage>& images,
                                      const std::vector<Certificate>& earlier, double sigma,
                                      const CertifyOptions& o, uint64_t seed, VoteBudget& budget) {
  check(o.rule() == VoteRule::kRadii && images.size() == earlier.size(),
        "continue_all: {} images with {} certificates", images.size(), earlier.size());
  if (images.empty()) return {};
  check_malicious(o, sampler.groups());
  const int64_t n = earlier[0].counts.n;
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < images.size(); ++i) {
    const auto& [x, index, label] = images[i];
    check(earlier[i].counts.n == n && n < o.n, "continue_all: {} votes, then {}",
          earlier[i].counts.n, o.n);
    check_subject(sampler, x);
    candidates.push_back(
        {i, earlier[i].counts.selected, estimation_votes(x, sigma, o, seed, index)});
  }
  std::vector<Climber> climbers;
  for (const Candidate& c : candidates) climbers.push_back({&c, {}, earlier[c.image].latches});
  std::vector<VoteRequest> more = requests_of(climbers);
  add_votes(sampler, climbers, more, 0, n);
  for (const Climber& climber : climbers) {
    const Counts& then = earlier[climber.candidate->image].counts;
    const Counts now = climber.counts(n, o.malicious);
    const bool others_agree = then.votes.empty() || now.votes == then.votes;
    if (now.top != then.top || now.runner_up != then.runner_up || !others_agree) {
      throw Error("image {}: {} of its first {} votes are for class {}, where there were {}",
                  images[climber.candidate->image].index, now.top, n, then.selected, then.top);
    }
  }
  std::vector<Certificate> certificates(images.size());
  count_until_decided(sampler, std::move(climbers), std::move(more), n, sigma, o, budget.test,
                      certificates);
  sampler.probe();
  for (size_t i = 0; i < images.size(); ++i) {
    certificates[i].counts.selection = earlier[i].counts.selection;
  }
  return certificates;
}

}  // namespace fedsmooth
