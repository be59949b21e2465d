// How thread blocks share a convolution with many channels out. Each computes a tile of 128 pixels
// of a client, and 64 or 128 channels.
//
// The gradient of a convolution with stride two reads a map whose pixels are two apart, with zeros
// between them. Pixels are therefore put in four classes by the parity of y and x. Those of a class
// meet the same taps, and none of the zeros: for them it is a convolution of stride one.
#pragma once

#include "fedsmooth/engine/cuda/kernels/rows/row_convolution.h"

namespace fedsmooth::wide {

constexpr int kPixels = 128;  // of a tile

/// Pixels of a convolution's result that meet the same taps: those with y = y0, y0 + spread, ...,
/// likewise x. Taps are first, first + spread, ... in each direction. Tap number j of pixel number
/// i reads coordinate i stride + begin + j.
struct PixelClass {
  int y0 = 0, x0 = 0, height = 0, width = 0;
  int first_y = 0, first_x = 0, taps_y = 0, taps_x = 0;
  int begin_y = 0, begin_x = 0;
  int tiles = 0;  // of a client

  __host__ __device__ int pixels() const { return height * width; }
  __host__ __device__ int taps() const { return taps_y * taps_x; }
};

struct WideCut {
  PixelClass classes[4];
  int count = 1;   // of classes
  int tiles = 0;   // of a client, in all classes
  int across = 1;  // tiles of channels
};

/// Returns the columns of a tile: 128 channels, or 64 where these fill tiles better.
inline int columns_for(int channels) {
  const int wide = (channels + 127) / 128 * 128, narrow = (channels + 63) / 64 * 64;
  return wide == narrow ? 128 : 64;
}

// One direction of a class: pixels at `at`, at + spread, ... of `size`.
struct ClassLine {
  int count, first, taps, begin;

  ClassLine(const RowConvolution& c, int at, int size)
      : count((size - at + c.spread - 1) / c.spread),
        first(((c.padding - at) % c.spread + c.spread) % c.spread),
        taps(first < c.kernel ? (c.kernel - first + c.spread - 1) / c.spread : 0),
        begin((at + first - c.padding) / c.spread) {}
};

inline WideCut cut_wide(const RowConvolution& c) {
  WideCut cut;
  const int columns = columns_for(c.out.channels);
  cut.across = (c.out.channels + columns - 1) / columns;
  cut.count = 0;
  for (int y = 0; y < c.spread; ++y) {
    for (int x = 0; x < c.spread; ++x) {
      const ClassLine down(c, y, c.out.height), along(c, x, c.out.width);
      PixelClass& made = cut.classes[cut.count++];
      made = {y,           x,         down.count, along.count, down.first,
              along.first, down.taps, along.taps, down.begin,  along.begin};
      made.tiles =
          static_cast<int>((static_cast<int64_t>(c.rows) * made.pixels() + kPixels - 1) / kPixels);
      cut.tiles += made.tiles;
    }
  }
  return cut;
}

}  // namespace fedsmooth::wide
