// What lists of examples are made with, beside the attack on images: rows of several kinds, and
// noises that are moved one by one.
#pragma once

#include "fedsmooth/base/array.h"

namespace fedsmooth {

/// The rows of an image in `first`, then those in `second`, and so on for every image.
Array interleave(const Array& first, const Array& second, int64_t images);

/// Writes the gradient of a row's cross entropy with target q: softmax of its logits, less q.
void subtract_target(Array& gradient, const Array& logits, int64_t row, const float* q);

/// Moves a row of `size` values by `step` along g; a zero gradient moves nothing.
void step_by_unit(float* row, const float* g, int64_t size, double step);

/// The class of the largest logit.
int64_t answer(const Array& logits, int64_t row);

}  // namespace fedsmooth
