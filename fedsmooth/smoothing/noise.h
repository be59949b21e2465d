// Gaussian noise in pixel space, before any normalisation, never clipped: what prediction and
// certification add. Training draws the same normals by their streams (federated/client.cpp).
#pragma once

#include <functional>

#include "fedsmooth/base/array.h"
#include "fedsmooth/base/random.h"

namespace fedsmooth {

/// noisy[i] = x + sigma e_(first + i) for i < count; x is [C, H, W], noisy [>= count, C, H, W].
/// Rows from `count` on stay as they are.
void add_noise(const Array& x, double sigma, Stream stream, int64_t first, int64_t count,
               Array& noisy);

enum class NoiseKind {
  kFloat,     // add_noise(): the sum is rounded to fp32
  kCutFloat,  // the same with normals of at most 6.66: the law of older tables, drawn no more
  kExact,     // see exact_noise.h
};

/// Another way to write such copies. A value that is not a number makes its copy vote for nobody.
using NoiseSource = std::function<void(const Array& x, double sigma, Stream stream, int64_t first,
                                       int64_t count, Array& noisy)>;

/// Are these arguments as add_noise() wants them?
void check_copies(const Array& x, int64_t first, int64_t count, const Array& noisy);

}  // namespace fedsmooth
