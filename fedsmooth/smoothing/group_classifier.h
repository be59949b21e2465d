// Several networks as one base classifier by majority vote, for certificates against clients that
// lie in training; group_votes.h has what is counted and what it proves.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

/// The base classifier H whose networks are the members. Its logits are those of all members, so
/// that check() and probe() compare every network's bits, not just votes, and every copy's noise is
/// the same for all of them. CPU cores count its votes; samplers of the members' own are not used,
/// see engine/ensembles.h for GPUs. Throws an Error unless there are two members or more, all of
/// one network, with the same number of classes and batches of one size.
BaseClassifier group_classifier(const std::vector<BaseClassifier>& members);

/// The description of the majority of classifiers with these descriptions: each distinct one, in
/// ascending order and joined by "+", then "/majority-of-N".
std::string describe_groups(const std::vector<std::string>& descriptions);

}  // namespace fedsmooth
