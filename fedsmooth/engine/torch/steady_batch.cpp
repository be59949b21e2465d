#include "fedsmooth/engine/torch/steady_batch.h"

namespace fedsmooth {

BaseClassifier largest_steady_batch(const std::function<BaseClassifier(int64_t batch)>& make,
                                    const Sizes& shape) {
  constexpr int64_t kLargest = 4096, kSmallest = 256;
  for (int64_t batch = kLargest;; batch /= 2) {
    BaseClassifier f = make(batch);
    try {
      check_is_function(f, shape);
      return f;
    } catch (const DependsOnPosition&) {
      if (batch == kSmallest) throw;
    }
  }
}

}  // namespace fedsmooth
