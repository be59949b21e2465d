// The usual augmentation of small images: a random crop after padding by four pixels, and a random
// horizontal flip.
#pragma once

#include "fedsmooth/base/random.h"
#include "fedsmooth/base/tensor.h"

namespace fedsmooth {

/// Images [B, C, H, W], each moved by up to four pixels (zeros come in) and flipped in half of the
/// cases: row i by sample i of `stream`.
Tensor augment(const Tensor& images, Stream stream);

}  // namespace fedsmooth
