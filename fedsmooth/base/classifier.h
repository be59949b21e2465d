// Classifiers as functions: what smoothing and attack know of a model.
#pragma once

#include <functional>

#include "fedsmooth/base/array.h"

namespace fedsmooth {

/// Images [B, C, H, W] to logits [B, K].
using Classifier = std::function<Array(const Array&)>;

/// One whose gradients can be asked for. Made for one thread.
struct DifferentiableClassifier {
  Classifier logits;
  /// The gradient with respect to the images of the last call, [B, C, H, W], of a function of its
  /// logits that has this gradient [B, K] there.
  std::function<Array(const Array& gradient)> backward;
};

}  // namespace fedsmooth
