// Several networks on the GPU as one base classifier: the argmax of the mean of their logits, or
// the majority of their votes.
#pragma once

#include <vector>

#include "fedsmooth/engine/cuda/vote_pass.h"
#include "fedsmooth/model/model.h"

namespace fedsmooth {

/// Returns passes that evaluate all members on the same noisy copies and vote by the mean of their
/// logits: a sum in float32 in the order of the list, divided by the number of members, to the bits
/// of mean_classifier(). A copy with a logit that is not finite votes for nobody. Throws an Error
/// unless there is a member and all have the same number of classes and the same batch.
VotePasses mean_passes(const std::vector<VotePasses>& members);

/// Returns passes that evaluate all members on the same noisy copies and give all their logits,
/// [groups, classes] for a row: those of group_classifier(). Throws an Error as mean_passes() does,
/// and unless there are two members or more.
VotePasses group_passes(const std::vector<VotePasses>& members);

/// Returns the mean of networks as a base classifier on the current GPU, each evaluated by
/// network_passes(). The batch is the smallest of their fastest_batch(). Batch norms must be
/// folded, and missing_for_engine() must find nothing missing for each network.
BaseClassifier ensemble_gpu_classifier(const std::vector<Model>& folded);

/// Returns the majority of networks as a base classifier, under the same conditions. Each network
/// has maps of its own for a batch of copies.
BaseClassifier group_gpu_classifier(const std::vector<Model>& folded);

}  // namespace fedsmooth
