// Several base classifiers as one: f(x) = argmax of the mean of the members' logits. A certificate
// of f is about this one function. It needs no property of the members beyond those that every base
// classifier must have: the same bits for the same image, whatever else is in the batch.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

/// The base classifier whose logits are the mean of the members' logits: a sum in float32 in the
/// order of the list, then one division by their number, rounded to nearest. A logit that is not
/// finite makes the mean not finite, so that such a copy votes for nobody. Evaluates the members by
/// make(); samplers of their own are not used, so CPU cores count its votes. Throws an Error unless
/// there is a member, all have the same number of classes and all evaluate batches of one size.
BaseClassifier mean_classifier(const std::vector<BaseClassifier>& members);

/// The description of the mean of classifiers with these descriptions: each distinct one, in
/// ascending order and joined by "+", then "/mean-of-N".
std::string describe_mean(std::vector<std::string> descriptions);

}  // namespace fedsmooth
