// Rounds that tests of the GPU's executors run.
#pragma once

#include "fedsmooth/data/sources.h"
#include "fedsmooth/federated/executor.h"

namespace fedsmooth {

inline const Dataset& shapes() {
  static const Dataset data = make_shapes(Split::kTrain, 600, 0);
  return data;
}

/// Clients of different sizes, with images of shapes().
inline Cohort cohort_of(int64_t clients) {
  Cohort cohort;
  for (int64_t k = 0; k < clients; ++k) {
    cohort.clients.push_back(3 * k + 1);
    cohort.images.emplace_back();
    for (int64_t i = 0; i < 20 + k; ++i) cohort.images.back().push_back((37 * k + i) % 600);
    cohort.total += 20 + k;
  }
  return cohort;
}

inline Weights start(const Network& network) { return initial_weights(network, Key{1}); }

}  // namespace fedsmooth
