// The votes of an image as a short list that leaves out classes without votes. With 1,000 classes,
// nearly all votes are for a few of them, so the list needs little memory and little text.
#pragma once

#include <cstdint>
#include <vector>

namespace fedsmooth {

struct ClassVotes {
  int64_t label = 0;
  int64_t votes = 0;  // positive
  bool operator==(const ClassVotes&) const = default;
};

/// Classes in ascending order, each once.
using Tally = std::vector<ClassVotes>;

/// Returns the tally of `votes`, which has one entry for each class.
Tally tally_of(const std::vector<int64_t>& votes);

/// Returns the sum of all votes; at most 2^52 for a list of at most 2^20 classes.
int64_t total_votes(const Tally& tally);
int64_t votes_for(const Tally& tally, int64_t label);
/// Returns the most votes for a class other than `label`.
int64_t most_for_another(const Tally& tally, int64_t label);
/// Returns the class with the most votes, the first on ties; class 0 if nobody voted.
int64_t most_voted(const Tally& tally);

}  // namespace fedsmooth
