// Networks in double for tests: arrays as maps, a loss of the logits, and slopes of it.
#pragma once

#include <cmath>
#include <optional>

#include "fedsmooth/base/draws.h"
#include "fedsmooth/engine/reference/reference_passes.h"
#include "tests/arrays.h"

namespace fedsmooth::reference {

template <typename Number>
Map<Number> map_of(const Array& images) {
  Map<Number> map(images.size(0), {images.size(1), images.size(2), images.size(3)});
  std::copy_n(images.floats(), images.count(), map.values.begin());
  return map;
}

template <typename Number>
ReferenceNetwork<Number> network_of(const Network& network, const Weights& weights) {
  ReferenceNetwork<Number> made(network);
  for (const Array& w : weights) made.weights.emplace_back(w.floats(), w.floats() + w.count());
  return made;
}

/// Random weights at which no batch norm is the identity. With a gain of sqrt(6) kernels have the
/// variance 2 / fan_in, which keeps the images' part in the maps through many layers.
inline Weights lively_weights(const Network& network, float gain) {
  Weights weights = initial_weights(network, Key{1});
  const std::vector<Parameter> described = parameters(network);
  for (size_t i = 0; i < weights.size(); ++i) {
    const bool drawn = described[i].fan_in > 0;
    weights[i] = drawn ? each(weights[i], [&](float w) { return gain * w; })
                       : each(uniform(described[i].shape, i), [](float u) { return u + 0.5f; });
  }
  return weights;
}

/// Values of which no two are close, and none is close to zero: no small step changes the sign of
/// one or the order of two.
inline Array distinct_values(const Sizes& sizes, uint64_t seed) {
  Array out(sizes);
  const int64_t count = out.count();
  const std::vector<int64_t> order = Draws({make_key(seed, Purpose::kProbe)}).choose(count, count);
  for (int64_t i = 0; i < count; ++i) {
    out.floats()[i] = (4.0f * static_cast<float>(order[i]) + 2) / static_cast<float>(count) - 2;
  }
  return out;
}

/// The sum of c_i y_i over outputs y, with c_i from 0.5 to 1.5: no two have the same part in it.
struct WeightedSum {
  Array factors;

  explicit WeightedSum(int64_t outputs) : factors(uniform({outputs}, 77)) {
    for (int64_t i = 0; i < outputs; ++i) factors.floats()[i] += 0.5f;
  }

  template <typename Number>
  double value(const Map<Number>& y) const {
    double sum = 0;
    for (size_t i = 0; i < y.values.size(); ++i) sum += factors.floats()[i] * double{y.values[i]};
    return sum;
  }

  template <typename Number>
  Map<Number> gradient(const Map<Number>& y) const {
    Map<Number> dy = y;
    std::copy_n(factors.floats(), factors.count(), dy.values.begin());
    return dy;
  }
};

/// The central difference of f(x) in one of its values, which is left as it was.
template <typename Function>
double slope(double& x, double step, const Function& f) {
  const double before = x;
  x = before + step;
  const double above = f();
  x = before - step;
  const double below = f();
  x = before;
  return (above - below) / (2 * step);
}

}  // namespace fedsmooth::reference
