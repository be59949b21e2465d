// The votes of all classes as a short list: a class without votes is left out, so that an image of
// a data set with 1,000 classes, nearly all of whose votes are for a few, costs little memory and
// little text.
#pragma once

#include <cstdint>
#include <vector>

namespace fedsmooth {

struct ClassVotes {
  int64_t label = 0;
  int64_t votes = 0;  // positive
  bool operator==(const ClassVotes&) const = default;
};

/// In ascending order of class, each once.
using Tally = std::vector<ClassVotes>;

/// `votes` has one entry for each class.
Tally tally_of(const std::vector<int64_t>& votes);

/// The votes of all classes together; at most 2^52 for a list of at most 2^20 classes.
int64_t total_votes(const Tally& tally);
int64_t votes_for(const Tally& tally, int64_t label);
/// The most votes for a class other than `label`.
int64_t most_for_another(const Tally& tally, int64_t label);
/// The class with the most votes, the first on ties; class 0 if nobody voted.
int64_t most_voted(const Tally& tally);

}  // namespace fedsmooth
