// Evaluation with fewer layers: a batch norm's running statistics make it a scale and a shift of
// each channel, which the convolution before it can do itself, and standardised filters can be
// plain ones.
#pragma once

#include "fedsmooth/model/model.h"

namespace fedsmooth {

/// The model with plain filters in place of those that convolutions standardise, and with every
/// batch norm that directly follows a convolution folded into it, in residual blocks too. In
/// evaluation mode it gives the same logits up to rounding. Other tensors are shared.
Model fold_batch_norm(const Model& model);

}  // namespace fedsmooth
