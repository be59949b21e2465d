// Arithmetic on arrays that only tests need.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "fedsmooth/base/array.h"
#include "fedsmooth/base/random.h"

namespace fedsmooth {

/// Uniform on [0, 1).
inline Array uniform(const Sizes& sizes, uint64_t seed) {
  Array out(sizes);
  fill_uniform({make_key(seed, Purpose::kProbe)}, 0, out.floats(), out.count());
  return out;
}

/// From 0 to 1 in equal steps.
inline Array rising(const Sizes& sizes) {
  Array out(sizes);
  const auto steps = static_cast<float>(out.count() - 1);
  for (int64_t i = 0; i < out.count(); ++i) out.floats()[i] = static_cast<float>(i) / steps;
  return out;
}

/// `f` of every value.
inline Array each(const Array& a, const std::function<float(float)>& f) {
  Array out(a.sizes());
  std::transform(a.floats(), a.floats() + a.count(), out.floats(), f);
  return out;
}

inline std::vector<float> values_of(const Array& a) { return {a.floats(), a.floats() + a.count()}; }

/// The largest absolute value.
inline double largest(const Array& a) {
  double most = 0;
  for (const float v : values_of(a)) most = std::max(most, std::abs(static_cast<double>(v)));
  return most;
}

/// The largest absolute difference. NaN if there is one in either.
inline double difference(const Array& a, const Array& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  double most = 0;
  for (int64_t i = 0; i < std::min(a.count(), b.count()); ++i) {
    const double apart = std::abs(static_cast<double>(a.floats()[i]) - b.floats()[i]);
    if (!(apart <= most) && !std::isnan(most)) most = apart;
  }
  return most;
}

}  // namespace fedsmooth
