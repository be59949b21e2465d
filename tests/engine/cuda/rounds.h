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

/// What objectives read beside images, in a round in which they read it.
inline void add_tables(LocalTask& task) {
  task.progress = 0.5;
  task.teacher = Array({600, 10});
  task.image_weights = Array({600});
  for (int64_t i = 0; i < 600; ++i) {
    task.image_weights.floats()[i] = static_cast<float>(i % 3);
    // Most votes for the label, the others for two classes more.
    float* q = task.teacher.floats() + 10 * i;
    q[shapes().label(i)] += 0.75f;
    q[i % 10] += 0.125f;
    q[(i + 3) % 10] += 0.125f;
  }
}

inline Weights start(const Network& network) { return initial_weights(network, Key{1}); }

}  // namespace fedsmooth
