// The maps [B, C, H, W] of the reference, in float or double.
#pragma once

#include <cstdint>
#include <vector>

#include "fedsmooth/model/network.h"

namespace fedsmooth::reference {

/// The values of `images` images, each of shape `shape`.
template <typename Number>
struct Map {
  int64_t images = 0;
  Shape shape = {};
  std::vector<Number> values;

  Map() = default;
  Map(int64_t count, const Shape& of)
      : images(count), shape(of), values(count * of[0] * of[1] * of[2], Number{0}) {}
  int64_t area() const { return shape[1] * shape[2]; }
  /// Returns the number of values of one image.
  int64_t size() const { return shape[0] * area(); }
  Number* plane(int64_t image, int64_t channel) {
    return values.data() + (image * shape[0] + channel) * area();
  }
  const Number* plane(int64_t image, int64_t channel) const {
    return values.data() + (image * shape[0] + channel) * area();
  }
};

template <typename Number>
using Values = std::vector<Number>;

}  // namespace fedsmooth::reference
