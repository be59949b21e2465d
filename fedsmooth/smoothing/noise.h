// The Gaussian noise of prediction and certification: in pixel space, before any normalisation, not
// clipped.
#pragma once

#include "fedsmooth/base/array.h"
#include "fedsmooth/base/random.h"

namespace fedsmooth {

/// Writes noisy[i] = x + sigma e_(first + i) for i < count; x is [C, H, W], noisy [>= count, C, H,
/// W]. Later rows of noisy are not changed. e_j is sample j of `stream`.
void add_noise(const Array& x, double sigma, Stream stream, int64_t first, int64_t count,
               Array& noisy);

/// Throws a Bug unless these are valid arguments of a NoiseSource.
void check_copies(const Array& x, int64_t first, int64_t count, const Array& noisy);

}  // namespace fedsmooth
