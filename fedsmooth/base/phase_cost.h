// What one part of a longer computation costs, for benchmarks.
#pragma once

namespace fedsmooth {

struct PhaseCost {
  double seconds = 0, operations = 0, bytes = 0;
};

}  // namespace fedsmooth
