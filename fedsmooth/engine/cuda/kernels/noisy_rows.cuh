// Finding a row's copy in the list of all copies.
#pragma once

#include "fedsmooth/engine/cuda/kernels/batched_votes.h"

namespace fedsmooth {

// Of which image the copy at `place` of the list is.
inline __device__ int image_of(const NoisyRows& r, int64_t place) {
  int low = 0, high = r.images;  // it begins at or after `low`, before `high`
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (r.copies[middle].first <= place ? low : high) = middle;
  }
  return low;
}

}  // namespace fedsmooth
