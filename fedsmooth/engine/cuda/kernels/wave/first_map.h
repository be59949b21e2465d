// The layout of a network's first map: where each of its pixels is stored, and which value of an
// image each of its cells has.
#pragma once

#include <cstdint>

#include "fedsmooth/base/host_device.h"

namespace fedsmooth {

/// Strides in a stack of clients' maps, in pixels. Kernel families differ in whether the rows or
/// the pixels of a client are the outer index.
struct MapLayout {
  int64_t client = 0, row = 0, pixel = 0;

  static MapLayout rows_first(int64_t rows, int64_t pixels) { return {rows * pixels, pixels, 1}; }
  static MapLayout pixels_first(int64_t rows, int64_t pixels) { return {rows * pixels, 1, rows}; }

  FEDSMOOTH_HOST_DEVICE int64_t offset(int64_t of_client, int64_t of_row, int64_t of_pixel) const {
    return of_client * client + of_row * row + of_pixel * pixel;
  }
};

/// Pointers are to device memory.
struct FirstMap {
  MapLayout layout;
  int pixels = 0, channels = 0;
  const int16_t* source = nullptr;  // [pixel, channel]: index of an image's value; -1: zero
  const float *mean = nullptr, *scale = nullptr;  // per channel of an image: (x - mean) scale
};

}  // namespace fedsmooth
