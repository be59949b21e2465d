// The positions of the windows of convolutions and pools.
#pragma once

#include <cstdint>

#include "fedsmooth/model/network.h"

namespace fedsmooth::reference {

/// Calls use(position, entry of the window, pixel) for every pixel of the map in each window.
template <typename Use>
void for_each_meeting(const Layer& layer, const Shape& in, const Shape& out, const Use& use) {
  const int64_t kernel = layer.kernel;
  for (int64_t y = 0; y < out[1]; ++y) {
    for (int64_t x = 0; x < out[2]; ++x) {
      for (int64_t i = 0; i < kernel; ++i) {
        for (int64_t j = 0; j < kernel; ++j) {
          const int64_t row = y * layer.stride + i - layer.padding;
          const int64_t column = x * layer.stride + j - layer.padding;
          if (row < 0 || row >= in[1] || column < 0 || column >= in[2]) continue;
          use(y * out[2] + x, i * kernel + j, row * in[2] + column);
        }
      }
    }
  }
}

}  // namespace fedsmooth::reference
