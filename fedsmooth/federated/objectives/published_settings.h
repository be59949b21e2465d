// How published settings are read: by sigma, and by the epoch of 150.
#pragma once

#include <algorithm>

#include "fedsmooth/federated/client.h"

namespace fedsmooth {

/// One of three values, published for sigma 0.25, 0.5 and 1; for another sigma that of the nearest.
template <class Value>
Value by_sigma(const LocalTask& task, Value quarter, Value half, Value one) {
  const double sigma = task.smoothing.sigma;
  return sigma < 0.375 ? quarter : sigma < 0.75 ? half : one;
}

/// Schedules are published in epochs of 150; here an epoch is that share of the rounds.
inline double published_epoch(const LocalTask& task) { return 150 * task.progress; }

/// Grows to 1 over the first ten epochs.
inline double warm_up(const LocalTask& task) {
  return std::min(1.0, (published_epoch(task) + 1) / 10);
}

}  // namespace fedsmooth
