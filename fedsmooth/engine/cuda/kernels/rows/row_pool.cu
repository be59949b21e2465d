#include "fedsmooth/engine/cuda/kernels/rows/row_pool.h"

#include "fedsmooth/engine/cuda/kernels/rows/row_cells.cuh"

namespace fedsmooth {
namespace {

// A thread's cell of a map of all rows.
struct MapCell {
  bool any;
  int64_t row, at;  // among the rows of all clients; the cell among those of all rows
  int y, x, eight;

  __device__ MapCell(int rows, const MapShape& map) {
    const int eights = map.channels / 8, cells = map.pixels() * eights;
    const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
    any = i < static_cast<int64_t>(rows) * cells;
    row = static_cast<int64_t>(blockIdx.y) * rows + i / cells;
    const int within = static_cast<int>(i % cells), pixel = within / eights;
    at = row * cells + within;
    y = pixel / map.width;
    x = pixel % map.width;
    eight = within % eights;
  }
};

// Returns the cell of another map at a pixel of the same row and with the same channels.
__device__ int64_t cell_at(const MapCell& cell, const MapShape& map, int y, int x) {
  const int64_t pixel = cell.row * map.pixels() + y * map.width + x;
  return pixel * (map.channels / 8) + cell.eight;
}

template <typename T>
__global__ void __launch_bounds__(kThreads) pool_kernel(RowPool p) {
  const MapCell out(p.rows, p.out);
  if (!out.any) return;
  Eight<T> largest = {};
  float sums[8] = {};
  for (int i = 0; i < p.kernel; ++i) {
    for (int j = 0; j < p.kernel; ++j) {
      const int64_t from = cell_at(out, p.in, out.y * p.stride + i, out.x * p.stride + j);
      const Eight<T> x = load_eight<T>(p.x, from);
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        const float a = to_float(largest.value[c]), b = to_float(x.value[c]);
        sums[c] += b;
        if ((i == 0 && j == 0) || !(a >= b || a != a)) largest.value[c] = x.value[c];  // NaN wins
      }
    }
  }
  if (p.means) {
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      store(largest.value + c, sums[c] / static_cast<float>(p.kernel * p.kernel));
    }
  }
  store_eight(p.y, out.at, largest);
}

// The windows that have a line or column: [first, end).
struct Windows {
  int first, end;

  __device__ Windows(const RowPool& p, int at, int count)
      : first(at < p.kernel ? 0 : (at - p.kernel) / p.stride + 1),
        end(min(at / p.stride + 1, count)) {}
};

// Adds a window's gradient where the cell's pixel is the first that has the maximum.
template <typename T>
__device__ void add_of_maximum(const RowPool& p, const MapCell& in, const Eight<T>& own, int y,
                               int x, int64_t window, const Eight<T>& dy, float (&sums)[8]) {
  const Eight<T> largest = load_eight<T>(p.y, window);
  bool first[8];
#pragma unroll
  for (int c = 0; c < 8; ++c) first[c] = to_float(own.value[c]) == to_float(largest.value[c]);
  const int pixels = (in.y - y * p.stride) * p.kernel + in.x - x * p.stride;  // before the cell's
  for (int i = 0; i < pixels; ++i) {
    const int64_t at = cell_at(in, p.in, y * p.stride + i / p.kernel, x * p.stride + i % p.kernel);
    const Eight<T> before = load_eight<T>(p.x, at);
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      first[c] = first[c] && to_float(before.value[c]) != to_float(own.value[c]);
    }
  }
#pragma unroll
  for (int c = 0; c < 8; ++c) sums[c] += first[c] ? to_float(dy.value[c]) : 0.0f;
}

template <typename T>
__global__ void __launch_bounds__(kThreads) gradient_kernel(RowPoolGradient g) {
  const RowPool& p = g.pool;
  const MapCell in(p.rows, p.in);
  if (!in.any) return;
  const Eight<T> own = load_eight<T>(p.x, in.at);
  const Windows lines(p, in.y, p.out.height), columns(p, in.x, p.out.width);
  float sums[8] = {};
  for (int y = lines.first; y < lines.end; ++y) {
    for (int x = columns.first; x < columns.end; ++x) {
      const int64_t window = cell_at(in, p.out, y, x);
      const Eight<T> dy = load_eight<T>(g.dy, window);
      if (p.means) {
        add_eight(sums, dy);
      } else {
        add_of_maximum(p, in, own, y, x, window, dy, sums);
      }
    }
  }
  if (p.means) {
#pragma unroll
    for (int c = 0; c < 8; ++c) sums[c] /= static_cast<float>(p.kernel * p.kernel);
  }
  const bool adds = g.add != nullptr;
  Eight<T> add = {};
  if (adds) add = load_eight<T>(g.add, in.at);
  store_eight(g.dx, in.at, finish_gradient(sums, adds, add, g.mask, own));
}

}  // namespace

cudaError_t pool_rows(Precision precision, const RowPool& p, cudaStream_t stream) {
  const dim3 cells = blocks_for(p.rows * p.out.row_size() / 8, p.clients);
  return launch_in(precision, [&](auto value) {
    pool_kernel<decltype(value)><<<cells, kThreads, 0, stream>>>(p);
  });
}

cudaError_t differentiate_pool(Precision precision, const RowPoolGradient& g, cudaStream_t stream) {
  const dim3 cells = blocks_for(g.pool.rows * g.pool.in.row_size() / 8, g.pool.clients);
  return launch_in(precision, [&](auto value) {
    gradient_kernel<decltype(value)><<<cells, kThreads, 0, stream>>>(g);
  });
}

}  // namespace fedsmooth
