// The tiles into which a convolution of kernels/wide is cut. Each thread block computes one: 128
// pixels of a client, and 64 or 128 channels.
//
// The gradient of a convolution with stride two reads a map whose pixels are two apart, with zeros
// between them (`spread`). Its pixels are put in four classes by the parity of y and x. The taps
// that read no zeros are the same for all pixels of a class. With these taps alone, a class is
// computed like a convolution of stride one.
#pragma once

#include "fedsmooth/engine/cuda/kernels/rows/row_convolution.h"

namespace fedsmooth::wide {

constexpr int kPixels = 128;  // of a tile

/// Pixels of a convolution's result that use the same taps: those with y = y0, y0 + spread, ...,
/// and likewise x. In each direction their taps are first, first + spread, ...; the class's tap j
/// reads coordinate i stride + begin + j for the class's pixel i.
struct PixelClass {
  int y0 = 0, x0 = 0, height = 0, width = 0;
  int first_y = 0, first_x = 0, taps_y = 0, taps_x = 0;
  int begin_y = 0, begin_x = 0;
  int tiles = 0;  // number of tiles of a client

  __host__ __device__ int pixels() const { return height * width; }
  __host__ __device__ int taps() const { return taps_y * taps_x; }
};

struct WideCut {
  PixelClass classes[4];
  int count = 1;   // number of classes
  int tiles = 0;   // tiles of a client's pixels, in all classes
  int across = 1;  // tiles of channels
};

/// Returns the number of channels of a tile: 128, or 64 if that leaves fewer of them unused.
inline int columns_for(int channels) {
  const int wide = (channels + 127) / 128 * 128, narrow = (channels + 63) / 64 * 64;
  return wide == narrow ? 128 : 64;
}

// One direction of a class: its pixels are at, at + spread, ... below `size`.
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

/// The tiles of a convolution for which has_lines() is true, on Hopper: 64 channels of 16x16 pixels
/// of a row.
struct LinesCut {
  int down = 0, along = 0;  // tiles of a row in each direction
  int across = 1;           // tiles of channels
  int tiles = 0;            // tiles of a client's pixels

  explicit LinesCut(const RowConvolution& c)
      : down((c.out.height + 15) / 16),
        along((c.out.width + 15) / 16),
        across((c.out.channels + 63) / 64),
        tiles(c.rows * down * along) {}
};

/// Returns whether a convolution is cut into tiles of 16x16 pixels on Hopper: a 3x3 kernel with
/// stride one, and tiles that have at most 1.3 times as many pixels as the map.
inline bool has_lines(const RowConvolution& c) {
  const LinesCut cut(c);
  return c.kernel == 3 && c.stride == 1 && c.spread == 1 &&
         cut.down * cut.along * 256 * 10 <= c.out.pixels() * 13;
}

}  // namespace fedsmooth::wide
