// A classifier as a function: what smoothing and attack know of a model.
#pragma once

#include <functional>

#include "fedsmooth/base/tensor.h"

namespace fedsmooth {

/// Images [B, C, H, W] to logits [B, K].
using Classifier = std::function<Tensor(const Tensor&)>;

}  // namespace fedsmooth
