// Finding a row's copy in the list of all copies.
#pragma once

#include "fedsmooth/engine/cuda/kernels/batched_votes.h"

namespace fedsmooth {

// Of which request the copy at `place` of the list is.
inline __device__ int request_of(const NoisyRows& r, int64_t place) {
  int low = 0, high = r.requests;  // it begins at or after `low`, before `high`
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (r.copies[middle].first <= place ? low : high) = middle;
  }
  return low;
}

// The number of that copy's sample.
inline __device__ uint32_t sample_of(const NoisyCopies& c, int64_t place) {
  return c.sample + static_cast<uint32_t>(place - c.first);
}

}  // namespace fedsmooth
