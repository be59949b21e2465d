// The usual augmentation of small images: a random crop after padding by four pixels, and a random
// horizontal flip.
#pragma once

#include "fedsmooth/base/array.h"
#include "fedsmooth/base/random.h"

namespace fedsmooth {

/// Returns images [B, C, H, W], each moved by up to four pixels (zeros are shifted in) and flipped
/// with probability 1/2. Row i is drawn from sample i of `stream`.
Array augment(const Array& images, Stream stream);

}  // namespace fedsmooth
