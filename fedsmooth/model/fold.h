// A model for evaluation with fewer layers. With its running statistics a batch norm is a scale and
// a shift of each channel, which the preceding convolution can apply; standardised filters can be
// replaced by plain ones.
#pragma once

#include "fedsmooth/model/model.h"

namespace fedsmooth {

/// Returns the model with every batch norm that directly follows a convolution folded into it, in
/// residual blocks too, and with standardised filters replaced by plain ones. In evaluation mode
/// its logits are those of `model` up to rounding. Unchanged tensors are shared with `model`.
Model fold_batch_norm(const Model& model);

}  // namespace fedsmooth
