// A number of votes planned per image (`--plan LOSS`). A pilot estimates the share of the votes
// that the class gets, and so how much smaller the radius will be with fewer votes than the most
// that are allowed. The plan is the fewest of 500, 1000, 2000, ... votes that lose at most LOSS of
// radius in nine of ten cases, with the chance of the votes included.
//
// The pilot's votes choose the class and the plan and enter no bound. The following votes are fresh
// and their number does not depend on them, so the usual bound holds at the full alpha.
#pragma once

#include <map>

#include "fedsmooth/smoothing/certify.h"

namespace fedsmooth {

/// The fewest votes of a pilot.
inline constexpr int64_t kPilotVotes = 1000;

/// Plans votes and caches its results. `law` must outlive it. For one thread at a time.
class VotePlanner {
 public:
  VotePlanner(const CertifyOptions& options, double sigma, const NoiseLaw& law)
      : o_(options), sigma_(sigma), law_(law) {}

  /// Returns the number of votes to draw, by the pilot's counts. It is 500 if the pilot's upper
  /// bound at 0.01 shows no majority. An image that the most votes would answer gets enough votes
  /// for an answer.
  int64_t votes_for(const Counts& pilot);

 private:
  int64_t plan(const Counts& pilot) const;

  CertifyOptions o_;
  double sigma_;
  const NoiseLaw& law_;
  std::map<std::pair<int64_t, int64_t>, int64_t> planned_;  // cache, by the pilot's counts
};

}  // namespace fedsmooth
