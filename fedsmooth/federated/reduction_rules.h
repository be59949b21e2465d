// The library's own reductions, for the table in reductions.cpp.
#pragma once

#include "fedsmooth/federated/reductions.h"

namespace fedsmooth {

// coordinate_reductions.cpp
Reduction median_reduction();
Reduction trimmed_mean_reduction();

}  // namespace fedsmooth
