// How thread blocks cut row maps: an item is a few whole rows of a client, or a strip of one, with
// the pixels around it that a kernel reaches. It lies in shared memory as planes of eight channels,
// cells of 16 bytes a pixel: eight pixels side by side are read without bank conflicts, whatever
// the tap.
#pragma once

#include <algorithm>
#include <type_traits>

#include "fedsmooth/engine/cuda/kernels/batched_values.cuh"
#include "fedsmooth/engine/cuda/kernels/matrix_tiles.cuh"
#include "fedsmooth/engine/cuda/kernels/row_convolution.h"

namespace fedsmooth {

constexpr int kRowWarps = 8, kRowThreads = 32 * kRowWarps;
constexpr int kNoPlace = 1 << 30;  // beyond every value of an item

/// Divides small numbers by one that is known at the launch: n d < 2^32.
struct Divisor {
  unsigned by = 1, factor = 0;

  Divisor() = default;
  explicit Divisor(int d)
      : by(d), factor(static_cast<unsigned>((uint64_t{1} << 32) / by + (by > 1 ? 1 : 0))) {}

  __device__ int quotient(int n) const {
    return by == 1 ? n : static_cast<int>(__umulhi(static_cast<unsigned>(n), factor));
  }
  __device__ int remainder(int n) const { return n - quotient(n) * static_cast<int>(by); }
};

struct RowCut {
  int images = 1, strip = 1;                // rows of an item, and lines of each
  int strips = 1, items = 1;                // of a row; of a client
  int lines = 1, columns = 1;               // of a row's part in the tile, with its surroundings
  int pixels = 0;                           // of the item, of all its rows
  int plane = 0;                            // bytes of eight channels of the tile
  Divisor by_columns, by_lines, by_images;  // of the tile
  Divisor by_width, by_strip;               // of the output

  __host__ __device__ int cells() const { return images * lines * columns; }
};

/// A place in the list of all clients' items, and the way to the next one.
struct ItemPlace {
  int number, client, row, strip;  // of all; the item's first row, and its strip

  __device__ ItemPlace(const RowCut& cut, int i)
      : number(i),
        client(i / cut.items),
        row(i % cut.items / cut.strips * cut.images),
        strip(i % cut.strips) {}

  __device__ void advance(const RowCut& cut, int rows) {
    ++number;
    if (++strip < cut.strips) return;
    strip = 0;
    row += cut.images;
    if (row < rows) return;
    row = 0;
    ++client;
  }
  __device__ int64_t first_row(int rows) const { return static_cast<int64_t>(client) * rows + row; }
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
  cut.by_columns = Divisor(cut.columns);
  cut.by_lines = Divisor(cut.lines);
  cut.by_images = Divisor(cut.images);
  cut.by_width = Divisor(c.out.width);
  cut.by_strip = Divisor(cut.strip);
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

/// Where each cell of a tile comes from, for every strip: [strip, cell], the first value of a
/// pixel, counted from the item's first row; -1: zeros.
inline __device__ void find_cells(const RowConvolution& c, const RowCut& cut, int* cells) {
  const int apart = c.spread - 1;  // 0 or 1
  for (int i = threadIdx.x; i < cut.strips * cut.cells(); i += kRowThreads) {
    const int all_lines = cut.by_columns.quotient(i), images = cut.by_lines.quotient(all_lines);
    const int strip = cut.by_images.quotient(images), image = images - strip * cut.images;
    const int y = strip * cut.strip * c.stride + all_lines - images * cut.lines - c.padding;
    const int x = i - all_lines * cut.columns - c.padding;
    const int line = y >> apart, column = x >> apart;
    const bool real =
        ((x | y) & apart) == 0 && y >= 0 && line < c.in.height && x >= 0 && column < c.in.width;
    const int pixel = image * c.in.pixels() + line * c.in.width + column;
    cells[i] = real ? pixel * c.in.channels : -1;
  }
}

/// Values of the rows that an item has of a map; it may be the last and not full.
inline __device__ int values_of_item(const RowCut& cut, int rows, int row, const RowMap& map) {
  return min(cut.images, rows - row) * static_cast<int>(map.row_size());
}

/// Starts the copies of an item's tile. A thread copies the same eight channels of many cells.
template <int kGroups>
__device__ void load_tile(const RowConvolution& c, const RowCut& cut, const int* cells,
                          const ItemPlace& place, uint8_t* tile) {
  constexpr int kStep = kRowThreads / kGroups;
  const int group = threadIdx.x % kGroups, first = threadIdx.x / kGroups, count = cut.cells();
  const bf16* x = static_cast<const bf16*>(c.x) + place.first_row(c.rows) * c.in.row_size();
  const auto values = static_cast<unsigned>(values_of_item(cut, c.rows, place.row, c.in));
  cells += place.strip * count;
  uint32_t to = shared_address(tile) + group * cut.plane + first * 16;
#pragma unroll 4
  for (int cell = first; cell < count; cell += kStep, to += kStep * 16) {
    const int from = cells[cell];
    const bool real = static_cast<unsigned>(from) < values;
    copy_async(to, x + (real ? from + 8 * group : 0), real);
  }
}

/// The cell at which the kernel begins for pixel p of the item, in bytes.
inline __device__ int first_cell(const RowConvolution& c, const RowCut& cut, int p) {
  const int all_lines = cut.by_width.quotient(p), image = cut.by_strip.quotient(all_lines);
  const int y = all_lines - image * cut.strip, x = p - all_lines * c.out.width;
  return ((image * cut.lines + y * c.stride) * cut.columns + x * c.stride) * 16;
}

/// What call(channels) returns, with a number known when compiling: 16, 32 or 64.
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
