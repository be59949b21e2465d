// The usual augmentation of small images: a random crop after padding by four pixels, and a random
// horizontal flip.
#pragma once

#include "fedsmooth/base/array.h"
#include "fedsmooth/base/random.h"

namespace fedsmooth {

/// Images [B, C, H, W], each moved by up to four pixels (zeros come in) and flipped in half of the
/// cases: row i by sample i of `stream`.
Array augment(const Array& images, Stream stream);

}  // namespace fedsmooth
