// Several networks on the GPU as one base classifier: the argmax of the mean of their logits, or
// the majority of their votes.
#pragma once

#include <vector>

#include "fedsmooth/engine/cuda/vote_pass.h"
#include "fedsmooth/model/model.h"

namespace fedsmooth {

/// Passes that evaluate all members on the same noisy copies and vote by the mean of their logits:
/// a sum in float32 in the order of the list, divided by their number, to the bits of
/// mean_classifier(). A logit that is not finite makes the copy vote for nobody. Throws an Error
/// unless there is a member and all have the same number of classes and the same batch.
VotePasses mean_passes(const std::vector<VotePasses>& members);

/// Passes that evaluate all members on the same noisy copies and give all their logits, [groups,
/// classes] of a row: those of group_classifier(). Throws an Error as mean_passes() does, and
/// unless there are two members or more.
VotePasses group_passes(const std::vector<VotePasses>& members);

/// The mean of networks for which missing_for_engine() finds nothing missing, with their batch
/// norms folded, each by its fastest evaluator. All evaluate batches of the size that is best for
/// the one with the smallest.
BaseClassifier ensemble_gpu_classifier(const std::vector<Model>& folded);

/// Their majority, in the same way. Each has maps of its own for a batch of copies.
BaseClassifier group_gpu_classifier(const std::vector<Model>& folded);

}  // namespace fedsmooth
