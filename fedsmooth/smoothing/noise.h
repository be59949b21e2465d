// Gaussian noise in pixel space, before any normalisation, never clipped. Training, prediction and
// certification all draw it here.
#pragma once

#include "fedsmooth/base/random.h"
#include "fedsmooth/base/tensor.h"

namespace fedsmooth {

/// noisy[i] = x + sigma e_(first + i) for i < count; x [C, H, W] and noisy [>= count, C, H, W] are
/// contiguous floats. Rows from `count` on stay as they are.
void add_noise(const Tensor& x, double sigma, Stream stream, int64_t first, int64_t count,
               Tensor& noisy);

}  // namespace fedsmooth
