// Rounds that tests of the GPU's executors run.
#pragma once

#include <cmath>

#include "fedsmooth/data/sources.h"
#include "fedsmooth/federated/executor.h"
#include "tests/arrays.h"

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

/// The difference over the movement, of all trained weights or of all running statistics together.
inline double difference(const Network& network, const Weights& a, const Weights& b,
                         const Weights& from, bool trained) {
  const std::vector<Parameter> known = parameters(network);
  double off = 0, moved = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (known[i].trained != trained) continue;
    for (int64_t j = 0; j < a[i].count(); ++j) {
      const double found = a[i].floats()[j], expected = b[i].floats()[j];
      off += (found - expected) * (found - expected);
      moved += std::pow(expected - from[i].floats()[j], 2);
    }
  }
  return off == 0 ? 0 : std::sqrt(off / moved);  // a network may have no statistics
}

inline bool same(const Weights& a, const Weights& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same_bits(a[i], b[i])) return false;
  }
  return true;
}

}  // namespace fedsmooth
