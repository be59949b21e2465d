// Libraries choose their kernels by the size of the batch, and some kernels treat rows differently
// by their position: no certificate can be about them. Smaller batches get other kernels.
#pragma once

#include <functional>

#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

/// The classifier at the largest of a few batches, 4096 to 256, at which the logits of images of
/// `shape` do not depend on their positions. Whatever else check_is_function() finds is refused.
BaseClassifier largest_steady_batch(const std::function<BaseClassifier(int64_t batch)>& make,
                                    const Sizes& shape);

}  // namespace fedsmooth
