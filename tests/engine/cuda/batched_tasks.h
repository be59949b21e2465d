// Tasks and networks on which tests compare the GPU's executor of plain networks with the
// reference.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "fedsmooth/model/architectures.h"
#include "tests/engine/cuda/rounds.h"
#include "tests/engine/networks.h"

namespace fedsmooth {

// Odd sizes, a pool whose windows overlap, layers without a bias.
inline Network odd_network() {
  using Kind = Layer::Kind;
  Layer normalize{Kind::kNormalize};
  normalize.mean = {0.5, 0.5, 0.5};
  normalize.sd = {0.5, 0.4, 0.3};
  Layer first{Kind::kConv, "a", 7, 5, 3, 1}, pool{Kind::kMaxPool, "", 0, 3, 2};
  Layer second{Kind::kConv, "b", 70, 3, 2, 2}, last{Kind::kLinear, "c", 10};
  first.bias = last.bias = false;
  return {"odd", {3, 32, 32}, {normalize, first, {Kind::kRelu}, pool, second, pool, last}};
}

inline const Network& network_called(const std::string& name) {
  static std::map<std::string, Network> networks{{"odd", odd_network()},
                                                 {"pools", twice_pooled_network()}};
  if (networks.count(name) == 0) {
    ModelOptions options;
    options.name = name;
    set_default_normalization(options, "shapes", 3);
    networks[name] = build_network(options, {3, 32, 32}, 10);
  }
  return networks[name];
}

inline LocalTask task_for(const std::string& network, Method method, Estimator estimator) {
  LocalTask task{network_called(network), shapes(), /*augment=*/true, method};
  task.local = {.steps = 2, .batch = 9, .learning_rate = 0.05};
  task.smoothing.m = 3;
  task.attack.estimator = estimator;
  return task;
}

inline Weights round_of(Executor& executor, const LocalTask& task, int64_t clients) {
  const Weights global = start(task.network);
  return run_round(executor, {task, global, cohort_of(clients), 4})
      .sum.average(global, parameters(task.network));
}

inline double distance(const Array& a, const Array& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.count(); ++i) {
    const double apart = static_cast<double>(a.floats()[i]) - b.floats()[i];
    sum += apart * apart;
  }
  return std::sqrt(sum);
}

// The difference over the movement, for the tensor that differs most.
inline double difference(const Weights& a, const Weights& b, const Weights& from) {
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double off = distance(a[i], b[i]) / distance(b[i], from[i]);
    if (std::isnan(off)) return off;
    worst = std::max(worst, off);
  }
  return worst;
}

}  // namespace fedsmooth
