// How thread blocks cut row maps: an item is a few whole rows of a client, or a strip of one, with
// the pixels around it that a kernel reaches. It lies in shared memory as planes of eight channels,
// cells of 16 bytes a pixel: eight pixels side by side are read without bank conflicts, whatever
// the tap.
#pragma once

#include <algorithm>

#include "fedsmooth/engine/cuda/kernels/batched_values.cuh"
#include "fedsmooth/engine/cuda/kernels/matrix_tiles.cuh"
#include "fedsmooth/engine/cuda/kernels/row_convolution.h"

namespace fedsmooth {

constexpr int kRowWarps = 8, kRowThreads = 32 * kRowWarps;

struct RowCut {
  int images = 1, strip = 1;   // rows of an item, and lines of each
  int strips = 1, items = 1;   // of a row; of a client
  int lines = 1, columns = 1;  // of a row's part in the tile, with its surroundings
  int pixels = 0;              // of the item, of all its rows
  int plane = 0;               // bytes of eight channels of the tile

  __host__ __device__ int cells() const { return images * lines * columns; }
};

/// A row's part that has `strip` lines of the output; or several rows.
inline RowCut cut_rows(const RowConvolution& c, int images, int strip) {
  RowCut cut;
  cut.images = images;
  cut.strip = strip;
  cut.strips = (c.out.height + strip - 1) / strip;
  cut.items = (c.rows + images - 1) / images * cut.strips;
  cut.lines = (strip - 1) * c.stride + c.kernel;
  cut.columns = (c.out.width - 1) * c.stride + c.kernel;
  cut.pixels = images * strip * c.out.width;
  // Planes lie so that the cells of one pixel are in different banks.
  cut.plane = (cut.cells() * 16 + 127) / 128 * 128 + 128 / (c.in.channels / 8);
  return cut;
}

/// The largest item of at most `pixels` that `bytes(cut)` lets into shared memory.
template <class Bytes>
RowCut choose_cut(const RowConvolution& c, int pixels, int room, const Bytes& bytes) {
  int strip = std::min(c.out.height, std::max(1, pixels / c.out.width));
  // Pixels that lie two apart begin anew with every strip.
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

/// Where a cell of the tile comes from: a pixel, counted from the first row's line at which the
/// strip begins; and its line. No line means zeros.
struct CellSource {
  int pixel;
  short line, image;
};

inline __device__ void find_cells(const RowConvolution& c, const RowCut& cut, CellSource* cells) {
  for (int i = threadIdx.x; i < cut.cells(); i += kRowThreads) {
    const int image = i / (cut.lines * cut.columns);
    const int y = i / cut.columns % cut.lines - c.padding, x = i % cut.columns - c.padding;
    CellSource source{0, -30000, static_cast<short>(image)};
    // Of negative numbers only the parity matters: they lie outside.
    const int line = y >= 0 ? y / c.spread : -((-y + c.spread - 1) / c.spread);
    if (y == line * c.spread && x >= 0 && x % c.spread == 0 && x / c.spread < c.in.width) {
      source.line = static_cast<short>(line);
      source.pixel = image * c.in.pixels() + line * c.in.width + x / c.spread;
    }
    cells[i] = source;
  }
}

/// Starts the copies of an item's tile.
template <int kGroups>
__device__ void load_tile(const RowConvolution& c, const RowCut& cut, const CellSource* cells,
                          int client, int item, uint8_t* tile) {
  const int row = item / cut.strips * cut.images;
  const int line = item % cut.strips * cut.strip * c.stride / c.spread;
  const bf16* x = static_cast<const bf16*>(c.x);
  const int64_t first =
      (static_cast<int64_t>(client) * c.rows + row) * c.in.pixels() + line * c.in.width;
  const int count = cut.cells() * kGroups;
  for (int i = threadIdx.x; i < count; i += kRowThreads) {
    const int cell = i / kGroups, group = i % kGroups;
    const CellSource source = cells[cell];
    const int y = line + source.line;
    const bool real = y >= 0 && y < c.in.height && row + source.image < c.rows;
    const bf16* from = x + (first + source.pixel) * (8 * kGroups) + 8 * group;
    copy_async(tile + group * cut.plane + cell * 16, real ? from : x, real);
  }
}

/// The cell at which the kernel begins for pixel p of the item, in bytes.
inline __device__ int first_cell(const RowConvolution& c, const RowCut& cut, int p) {
  const int image = p / (cut.strip * c.out.width), y = p / c.out.width % cut.strip;
  const int x = p % c.out.width;
  return ((image * cut.lines + y * c.stride) * cut.columns + x * c.stride) * 16;
}

/// Room for a thread block, and how many of the multiprocessor's there is.
inline int shared_memory_limit() {
  int device = 0, bytes = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  return bytes;
}

inline int multiprocessors() {
  int device = 0, count = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
  return count;
}

}  // namespace fedsmooth
