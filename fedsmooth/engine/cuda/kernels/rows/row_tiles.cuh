// How thread blocks cut row maps (row_maps.h) into items. An item is a few whole rows of a client,
// or a strip of one row. Its tile, which includes the pixels around it that a kernel reaches, is in
// shared memory as planes of eight channels, with a cell of 16 bytes for each pixel: eight
// neighbouring pixels are read without bank conflicts, whatever the tap.
#pragma once

#include <algorithm>
#include <type_traits>

#include "fedsmooth/engine/cuda/kernels/rows/row_convolution.h"
#include "fedsmooth/engine/cuda/kernels/tensor_cores/matrix_tiles.cuh"
#include "fedsmooth/engine/cuda/kernels/this_gpu.h"
#include "fedsmooth/engine/cuda/kernels/wave/batched_values.cuh"

namespace fedsmooth {

constexpr int kRowWarps = 8, kRowThreads = 32 * kRowWarps;
constexpr int kNoPlace = 1 << 30;  // an offset beyond every value of an item

struct RowCut {
  int images = 1, strip = 1;   // number of rows in an item, and of output lines of each
  int strips = 1, items = 1;   // number of strips in a row, and of items of a client
  int lines = 1, columns = 1;  // of one row's part of the tile, with the pixels around it
  int pixels = 0;              // number of output pixels of the item
  int plane = 0;               // bytes of a plane of the tile
  bool halved = false;         // the tile leaves out the zeros between the pixels of a spread x

  __host__ __device__ int cells() const { return images * lines * columns; }
};

/// Returns whether a warp can compute pixels of the same parity together, in the gradient of a
/// convolution with stride two: those meet the same taps, and all other taps meet zeros.
inline bool can_halve(const RowConvolution& c, int strip) {
  return c.spread == 2 && c.padding == c.kernel / 2 && c.in.channels == 2 * c.out.channels &&
         c.out.height == 2 * c.in.height && c.out.width == 2 * c.in.width &&
         ((c.out.width == 32 && strip % 2 == 0) || (c.out.width == 16 && strip % 4 == 0));
}

/// Returns the cut into items of `images` whole rows, or of `strip` output lines of one row.
inline RowCut cut_rows(const RowConvolution& c, int images, int strip) {
  RowCut cut;
  cut.halved = can_halve(c, strip);
  cut.images = images;
  cut.strip = strip;
  cut.strips = (c.out.height + strip - 1) / strip;
  cut.items = (c.rows + images - 1) / images * cut.strips;
  cut.lines = cut.halved ? strip / 2 + c.kernel / 2 : (strip - 1) * c.stride + c.kernel;
  cut.columns =
      cut.halved ? c.out.width / 2 + c.kernel / 2 : (c.out.width - 1) * c.stride + c.kernel;
  cut.pixels = images * strip * c.out.width;
  // Planes are offset so that the cells of one pixel are in different banks.
  cut.plane = (cut.cells() * 16 + 127) / 128 * 128 + 128 / (c.in.channels / 8);
  return cut;
}

/// Returns the cut with the largest items of at most `pixels` pixels for which bytes(cut) <= room.
template <class Bytes>
RowCut choose_cut(const RowConvolution& c, int pixels, int room, const Bytes& bytes) {
  int strip = std::min(c.out.height, std::max(1, pixels / c.out.width));
  // With a spread x every strip must begin at an even line.
  if (c.spread > 1 && strip < c.out.height) strip = std::max(2, strip / 2 * 2);
  int images = strip < c.out.height ? 1 : std::clamp(pixels / c.out.pixels(), 1, c.rows);
  while (bytes(cut_rows(c, images, strip)) > room && images * strip > 2) {
    if (images > 1) {
      images /= 2;
    } else {
      strip = std::max(2, strip / 4 * 2);
    }
  }
  return cut_rows(c, images, strip);
}

/// Computes the source of each cell of a tile, `cells` [strip, cell]: the offset of a pixel in x
/// from the item's first row; -1: zeros. All threads of the block must call it.
inline __device__ void find_cells(const RowConvolution& c, const RowCut& cut, int* cells) {
  for (int i = threadIdx.x; i < cut.strips * cut.cells(); i += kRowThreads) {
    const int strip = i / cut.cells(), image = i % cut.cells() / (cut.lines * cut.columns);
    const int in_tile = i / cut.columns % cut.lines;
    const int y = cut.halved ? strip * cut.strip + in_tile * 2
                             : strip * cut.strip * c.stride + in_tile - c.padding;
    const int x = cut.halved ? i % cut.columns * 2 : i % cut.columns - c.padding;
    const int line = y / c.spread, column = x / c.spread;
    const bool real = y >= 0 && y % c.spread == 0 && line < c.in.height && x >= 0 &&
                      x % c.spread == 0 && column < c.in.width;
    const int pixel = image * c.in.pixels() + line * c.in.width + column;
    cells[i] = real ? pixel * c.in.channels : -1;
  }
}

/// Returns the number of values that the rows of an item have in a map. The last item may have
/// fewer rows than others.
inline __device__ int values_of_item(const RowCut& cut, int rows, int row, const MapShape& map) {
  return min(cut.images, rows - row) * static_cast<int>(map.row_size());
}

/// Starts the asynchronous copies of an item's tile. All threads of the block must call it.
template <int kGroups>
__device__ void load_tile(const RowConvolution& c, const RowCut& cut, const int* cells, int client,
                          int item, uint8_t* tile) {
  const int row = item / cut.strips * cut.images;
  const bf16* x = static_cast<const bf16*>(c.x) +
                  (static_cast<int64_t>(client) * c.rows + row) * c.in.row_size();
  const auto values = static_cast<unsigned>(values_of_item(cut, c.rows, row, c.in));
  const int count = cut.cells() * kGroups;
  cells += item % cut.strips * cut.cells();
#pragma unroll 4
  for (int i = threadIdx.x; i < count; i += kRowThreads) {
    const int cell = i / kGroups, group = i % kGroups, from = cells[cell];
    const bool real = static_cast<unsigned>(from) < values;
    copy_async(tile + group * cut.plane + cell * 16, x + (real ? from + 8 * group : 0), real);
  }
}

/// Returns the offset in bytes of the cell at which the kernel begins for pixel p of the item.
inline __device__ int first_cell(const RowConvolution& c, const RowCut& cut, int p) {
  const int image = p / (cut.strip * c.out.width), y = p / c.out.width % cut.strip;
  const int x = p % c.out.width;
  return ((image * cut.lines + y * c.stride) * cut.columns + x * c.stride) * 16;
}

/// Returns call(channels), where `channels` (16, 32 or 64) is a constant of the compiler.
template <class Call>
cudaError_t with_channels(int channels, const Call& call) {
  switch (channels) {
    case 16:
      return call(std::integral_constant<int, 16>());
    case 32:
      return call(std::integral_constant<int, 32>());
    default:
      return call(std::integral_constant<int, 64>());
  }
}

}  // namespace fedsmooth
