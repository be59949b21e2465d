#include "fedsmooth/engine/cpu/max_into.h"

#include "fedsmooth/base/vector_clones.h"

namespace fedsmooth {

FEDSMOOTH_VECTOR_CLONES
void max_into(float* __restrict y, const float* __restrict x, int64_t size) {
  for (int64_t i = 0; i < size; ++i) y[i] = (y[i] >= x[i]) | (y[i] != y[i]) ? y[i] : x[i];
}

}  // namespace fedsmooth
