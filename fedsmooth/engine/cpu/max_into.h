#pragma once

#include <cstdint>

namespace fedsmooth {

/// Replaces y by max(y, x), entry by entry. NaN is larger than any number, because an evaluation
/// that failed must not become a vote.
void max_into(float* y, const float* x, int64_t size);

}  // namespace fedsmooth
