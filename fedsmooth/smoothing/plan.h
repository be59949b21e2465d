// A number of votes planned per image (`--plan LOSS`): a pilot shows about which share of the votes
// the class gets, and so how much smaller its radius will be with fewer votes than the most that
// are allowed. Of 500, 1000, 2000, ... votes the fewest are drawn that lose at most LOSS in nine of
// ten cases: votes stray from the share, and LOSS is what an image may lose with that in it.
//
// The pilot's votes choose the class and this number, and enter no bound: the votes that follow are
// fresh, and their number does not depend on them, so that the usual bound holds at full alpha.
#pragma once

#include <map>

#include "fedsmooth/smoothing/certify.h"

namespace fedsmooth {

/// Votes of a pilot, at least.
inline constexpr int64_t kPilotVotes = 1000;

class VotePlanner {
 public:
  VotePlanner(const CertifyOptions& options, double sigma, const NoiseLaw& law)
      : o_(options), sigma_(sigma), law_(law) {}

  /// Votes to draw, by the pilot's counts. 500 if the class has no majority by the pilot's upper
  /// bound at 0.01. An image that the most votes would answer is not left to too few of them.
  int64_t votes_for(const Counts& pilot);

 private:
  int64_t plan(const Counts& pilot) const;

  CertifyOptions o_;
  double sigma_;
  const NoiseLaw& law_;
  std::map<std::pair<int64_t, int64_t>, int64_t> planned_;  // by the pilot's counts
};

}  // namespace fedsmooth
