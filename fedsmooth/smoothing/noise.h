// Gaussian noise in pixel space, before any normalisation, never clipped: what prediction and
// certification add. Training draws the same normals by their streams (federated/client.cpp).
#pragma once

#include "fedsmooth/base/array.h"
#include "fedsmooth/base/random.h"

namespace fedsmooth {

/// noisy[i] = x + sigma e_(first + i) for i < count; x is [C, H, W], noisy [>= count, C, H, W].
/// Rows from `count` on stay as they are.
void add_noise(const Array& x, double sigma, Stream stream, int64_t first, int64_t count,
               Array& noisy);

/// A Bug unless these are arguments of a NoiseSource.
void check_copies(const Array& x, int64_t first, int64_t count, const Array& noisy);

}  // namespace fedsmooth
