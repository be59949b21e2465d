// Finds a batch size at which a library's logits do not depend on a row's position. Libraries
// choose their kernels by the size of the batch, and some kernels treat rows differently by
// position: such a classifier cannot be certified. Smaller batches get other kernels.
#pragma once

#include <functional>

#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

/// Returns make(batch) for the largest batch of 4096, 2048, ..., 256 at which the logits of images
/// of `shape` do not depend on their positions. Throws what check_is_function() throws if there is
/// none or anything else is wrong.
BaseClassifier largest_steady_batch(const std::function<BaseClassifier(int64_t batch)>& make,
                                    const Sizes& shape);

}  // namespace fedsmooth
