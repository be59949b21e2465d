// Tools for making lists of examples, beside the attack on images: rows of several kinds, and
// noises that are moved one by one.
#pragma once

#include "fedsmooth/base/array.h"

namespace fedsmooth {

/// Returns, for every image, its rows in `first` followed by its rows in `second`.
Array interleave(const Array& first, const Array& second, int64_t images);

/// Writes softmax(z) - q to row `row` of `gradient` [rows, K]: the gradient of the cross entropy
/// with target q [K] with respect to z, the same row of `logits`.
void subtract_target(Array& gradient, const Array& logits, int64_t row, const float* q);

/// Moves a row of `size` values by `step` along g; a zero gradient moves nothing.
void step_by_unit(float* row, const float* g, int64_t size, double step);

/// Returns the class of the row's largest logit.
int64_t answer(const Array& logits, int64_t row);

}  // namespace fedsmooth
