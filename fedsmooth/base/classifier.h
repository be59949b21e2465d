// Classifiers as functions. Smoothing and attack know nothing else of a model.
#pragma once

#include <functional>

#include "fedsmooth/base/array.h"

namespace fedsmooth {

/// Maps images [B, C, H, W] to logits [B, K].
using Classifier = std::function<Array(const Array&)>;

/// A classifier with gradients. It serves one thread at a time.
struct DifferentiableClassifier {
  Classifier logits;
  /// Backpropagates: takes the gradient [B, K] of a loss with respect to the logits of the last
  /// call, and returns the gradient of that loss with respect to its images, [B, C, H, W].
  std::function<Array(const Array& gradient)> backward;
};

}  // namespace fedsmooth
