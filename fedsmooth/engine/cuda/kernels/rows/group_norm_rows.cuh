// The parts that both group norm kernels share, the one for at most 64 channels and the one for
// more. Each block computes a row, and all of a thread's cells (of eight channels) have the same
// channels.
#pragma once

#include "fedsmooth/engine/cuda/kernels/dependent_launch.cuh"
#include "fedsmooth/engine/cuda/kernels/rows/row_cells.cuh"
#include "fedsmooth/engine/cuda/kernels/rows/row_group_norm.h"

namespace fedsmooth {

// Compute apply_group_norm() and differentiate_group_norm() for more than 64 channels.
cudaError_t apply_wide_group_norm(Precision precision, const GroupNorm& n, cudaStream_t stream);
cudaError_t differentiate_wide_group_norm(Precision precision, const GroupNormGradient& g,
                                          cudaStream_t stream);

constexpr int kMostNarrowChannels = 64;
constexpr int kTogether = 4;            // cells that a thread reads at the same time
constexpr float kGroupEpsilon = 1e-5f;  // as in model/network.h

// Returns the number of threads that have cells: as many as possible for each eight channels.
__device__ inline int threads_with_cells(int channels) {
  return kThreads / (channels / 8) * (channels / 8);
}

struct BlockRow {
  int64_t row, first;  // index among the rows of all clients; index of its first cell
  int cells, channel;  // number of cells of the row; first of the thread's eight channels
  int step;            // from a thread's cell to its next one

  __device__ BlockRow(int rows, const MapShape& map) {
    const int eights = map.channels / 8;
    row = static_cast<int64_t>(blockIdx.y) * rows + blockIdx.x;
    cells = map.pixels() * eights;
    first = row * cells;
    channel = threadIdx.x % eights * 8;
    step = threads_with_cells(map.channels);
  }

  // Calls each(cell, a, b) with the values of two maps in the thread's cells; zeros if b is null.
  template <typename T, class Each>
  __device__ void for_each_cell(const void* a, const void* b, const Each& each) const {
    if (threadIdx.x >= step) return;
    for (int begin = threadIdx.x; begin < cells; begin += kTogether * step) {
      Eight<T> of_a[kTogether], of_b[kTogether] = {};
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        const int cell = begin + k * step;
        if (cell >= cells) break;
        of_a[k] = load_eight<T>(a, first + cell);
        if (b != nullptr) of_b[k] = load_eight<T>(b, first + cell);
      }
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        const int cell = begin + k * step;
        if (cell >= cells) break;
        each(first + cell, of_a[k], of_b[k]);
      }
    }
  }
};

// Adds a row's values of each of the thread's channels to own[0].
template <typename T>
__device__ void add_values(const BlockRow& row, const void* x, float (&own)[1][8]) {
  row.for_each_cell<T>(x, nullptr, [&](int64_t, const Eight<T>& cell, const Eight<T>&) {
#pragma unroll
    for (int j = 0; j < 8; ++j) own[0][j] += to_float(cell.value[j]);
  });
}

// Adds the squares of x - mean likewise.
template <typename T>
__device__ void add_squares(const BlockRow& row, const void* x, const float (&mean)[8],
                            float (&own)[1][8]) {
  row.for_each_cell<T>(x, nullptr, [&](int64_t, const Eight<T>& cell, const Eight<T>&) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float difference = to_float(cell.value[j]) - mean[j];
      own[0][j] += difference * difference;
    }
  });
}

// Writes y in the thread's cells, from the statistics of all channels.
template <typename T>
__device__ void write_normed(const GroupNorm& n, const BlockRow& row, const GroupValues* values) {
  const float* vector = n.weights.vectors + blockIdx.y * n.weights.size;
  float mean[8], scale[8], bias[8];
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    mean[j] = values[row.channel + j].mean;
    scale[j] = vector[n.weights.scale + row.channel + j] * values[row.channel + j].inverse;
    bias[j] = vector[n.weights.bias + row.channel + j];
  }
  row.for_each_cell<T>(n.x, n.add, [&](int64_t cell, const Eight<T>& x, const Eight<T>& add) {
    Eight<T> y;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      float value = scale[j] * (to_float(x.value[j]) - mean[j]) + bias[j];
      if (n.add != nullptr) value += to_float(add.value[j]);
      if (n.relu && value < 0.0f) value = 0.0f;
      store(y.value + j, value);
    }
    store_eight(n.y, cell, y);
  });
}

// The numbers of the thread's eight channels in a gradient.
struct GradientFactors {
  float mean[8], inverse[8], weight[8];

  __device__ GradientFactors(const GroupNormGradient& g, const BlockRow& row) {
    const GroupValues* values = g.values + row.row * g.map.channels + row.channel;
    const float* weights =
        g.weights.vectors + blockIdx.y * g.weights.size + g.weights.scale + row.channel;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      mean[j] = values[j].mean;
      inverse[j] = values[j].inverse;
      weight[j] = weights[j];
    }
  }
};

// Adds dy to own[0], and dy n to own[1].
template <typename T>
__device__ void add_products(const GroupNormGradient& g, const BlockRow& row,
                             const GradientFactors& of, float (&own)[2][8]) {
  row.for_each_cell<T>(g.x, g.dy, [&](int64_t, const Eight<T>& x, const Eight<T>& dy) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float value = to_float(dy.value[j]);
      own[0][j] += value;
      own[1][j] += value * ((to_float(x.value[j]) - of.mean[j]) * of.inverse[j]);
    }
  });
}

// Writes dx in the thread's cells, from the means of e and of e n of all channels.
template <typename T>
__device__ void write_gradient(const GroupNormGradient& g, const BlockRow& row,
                               const GradientFactors& of, const float* means,
                               const float* products) {
  const bool adds = g.add != nullptr;
  float mean_e[8], mean_product[8];
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    mean_e[j] = means[row.channel + j];
    mean_product[j] = products[row.channel + j];
  }
  row.for_each_cell<T>(g.x, g.dy, [&](int64_t cell, const Eight<T>& x, const Eight<T>& dy) {
    float gradient[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float n = (to_float(x.value[j]) - of.mean[j]) * of.inverse[j];
      const float centred = of.weight[j] * to_float(dy.value[j]) - mean_e[j];
      gradient[j] = of.inverse[j] * (centred - n * mean_product[j]);
    }
    Eight<T> add = {};
    if (adds) add = load_eight<T>(g.add, cell);
    store_eight(g.dx, cell, finish_gradient(gradient, adds, add, g.mask, x));
  });
}

}  // namespace fedsmooth
