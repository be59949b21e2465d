#include "fedsmooth/smoothing/tally.h"

#include <algorithm>

namespace fedsmooth {

Tally tally_of(const std::vector<int64_t>& votes) {
  Tally tally;
  for (size_t c = 0; c < votes.size(); ++c) {
    if (votes[c] > 0) tally.push_back({static_cast<int64_t>(c), votes[c]});
  }
  return tally;
}

int64_t total_votes(const Tally& tally) {
  int64_t total = 0;
  for (const ClassVotes& of : tally) total += of.votes;
  return total;
}

int64_t votes_for(const Tally& tally, int64_t label) {
  const auto found = std::lower_bound(tally.begin(), tally.end(), label,
                                      [](const ClassVotes& of, int64_t c) { return of.label < c; });
  return found != tally.end() && found->label == label ? found->votes : 0;
}

int64_t most_for_another(const Tally& tally, int64_t label) {
  int64_t most = 0;
  for (const ClassVotes& of : tally) {
    if (of.label != label) most = std::max(most, of.votes);
  }
  return most;
}

int64_t most_voted(const Tally& tally) {
  ClassVotes most;
  for (const ClassVotes& of : tally) {
    if (of.votes > most.votes) most = of;
  }
  return most.label;
}

}  // namespace fedsmooth
