// Row maps of random values, and sums with the rounding that they may have.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <vector>

#include "fedsmooth/engine/cuda/kernels/rows/row_maps.h"
#include "tests/arrays.h"
#include "tests/engine/cuda/gpu.h"

namespace fedsmooth {

/// Steps of bfloat16 and of float32, relative to a value.
inline constexpr double kHalfStep = 0x1p-8, kFullStep = 0x1p-23;

using Doubles = std::vector<double>;

struct RowShape {
  int clients, rows, height, width, channels;

  MapShape map() const { return {height, width, channels}; }
  int64_t client_size() const { return rows * map().row_size(); }
  int64_t size() const { return clients * client_size(); }
  int client_of(int64_t at) const { return static_cast<int>(at / client_size()); }
  int channel_of(int64_t at) const { return static_cast<int>(at % channels); }
  /// Returns the place of a value's channel in [client, channel].
  int64_t place_of(int64_t at) const { return int64_t{client_of(at)} * channels + channel_of(at); }
  int64_t row_of(int64_t at) const { return at / map().row_size(); }
};

inline std::ostream& operator<<(std::ostream& to, const RowShape& s) {
  return to << s.clients << "x" << s.rows << " of " << s.height << "x" << s.width << "x"
            << s.channels;
}

/// Returns values from -0.5 to 0.5, rounded to bfloat16 if `rounded` is set, else to float32.
inline Doubles random_values(int64_t count, uint64_t seed, bool rounded) {
  Doubles values;
  for (const float v : values_of(uniform({count}, seed))) {
    const float value = v - 0.5f;
    values.push_back(rounded ? from_bfloat16(to_bfloat16(value)) : value);
  }
  return values;
}

inline NumberType type_of(Precision precision) {
  return precision == Precision::kBfloat16 ? NumberType::kBfloat16 : NumberType::kFloat;
}

/// Sums in double, and the sizes of their terms.
struct Sums {
  Doubles value, size;
  explicit Sums(int64_t count) : value(count), size(count) {}
  void add(int64_t at, double term) { add(at, term, std::abs(term)); }
  void add(int64_t at, double term, double of) {
    value[at] += term;
    size[at] += of;
  }
  /// Expects sums that `additions` roundings to float32, of at most all terms each, and `last`,
  /// relative to the sum, explain.
  void expect(const Doubles& found, double additions, double last) const {
    ASSERT_EQ(found.size(), value.size());
    for (size_t i = 0; i < found.size(); ++i) {
      const double bound = additions * kFullStep * size[i] + last * std::abs(value[i]) + 1e-12;
      ASSERT_LE(std::abs(found[i] - value[i]), bound) << "value " << i << " is " << value[i];
    }
  }
};

}  // namespace fedsmooth
