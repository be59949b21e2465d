#pragma once

#include <cstdint>

namespace fedsmooth {

/// y = max(y, x), entry by entry. NaN wins: a broken evaluation must not turn into a vote.
void max_into(float* y, const float* x, int64_t size);

}  // namespace fedsmooth
