#include "fedsmooth/engine/cuda/kernels/rows/row_norm.h"

#include "fedsmooth/engine/cuda/kernels/dependent_launch.cuh"
#include "fedsmooth/engine/cuda/kernels/rows/row_cells.cuh"

namespace fedsmooth {
namespace {

constexpr int kCells = 4;  // cells that a thread writes

// The cells of a thread: several with the same channels, so that it reads the norm's values once,
// and several cells at the same time.
struct ThreadCells : SliceCells {
  __device__ ThreadCells(int rows, const MapShape& map)
      : SliceCells(rows, map, static_cast<int64_t>(blockIdx.x) * kThreads * kCells) {}

  template <typename T>
  __device__ void load(const void* map, Eight<T> (&cells)[kCells]) const {
#pragma unroll
    for (int k = 0; k < kCells; ++k) {
      if (has(k)) cells[k] = load_eight<T>(map, at(k));
    }
  }
};

template <typename T>
__global__ void __launch_bounds__(kThreads) apply_kernel(NormApply a) {
  wait_for_earlier_kernels();
  const ThreadCells own(a.rows, a.map);
  const NormValues* values = a.values + blockIdx.y * a.values_client + own.channel;
  Eight<T> x[kCells], add[kCells] = {};
  own.load(a.x, x);
  if (a.add != nullptr) own.load(a.add, add);
  float scale[8], shift[8];
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    scale[j] = values[j].scale;
    shift[j] = values[j].shift;
  }
#pragma unroll
  for (int k = 0; k < kCells; ++k) {
    if (!own.has(k)) break;
    Eight<T> y;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      float value = scale[j] * to_float(x[k].value[j]) + shift[j];
      if (a.add != nullptr) value += to_float(add[k].value[j]);
      if (a.relu && value < 0.0f) value = 0.0f;
      store(y.value + j, value);
    }
    store_eight(a.y, own.at(k), y);
  }
}

// dx = scale (dy - mean(dy) - n mean(dy n)) with n = (x - mean) inverse. In mode kAnswers the means
// are zero, so that x is only read for the mask. kPlain: in training, with neither `add` nor mask,
// which needs fewer registers.
template <typename T, bool kPlain>
__global__ void __launch_bounds__(kThreads) gradient_kernel(NormGradient g) {
  wait_for_earlier_kernels();
  const ThreadCells own(g.rows, g.map);
  const bool adds = !kPlain && g.add != nullptr, masks = !kPlain && g.mask;
  Eight<T> x[kCells] = {}, dy[kCells], add[kCells] = {};
  if (kPlain || !g.answers || masks) own.load(g.x, x);
  own.load(g.dy, dy);
  if (adds) own.load(g.add, add);
  NormValues v[8];
#pragma unroll
  for (int j = 0; j < 8; ++j) v[j] = g.values[blockIdx.y * g.values_client + own.channel + j];
#pragma unroll
  for (int k = 0; k < kCells; ++k) {
    if (!own.has(k)) break;
    float gradient[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float n = (to_float(x[k].value[j]) - v[j].mean) * v[j].inverse;
      const float centred = to_float(dy[k].value[j]) - v[j].mean_dy;
      gradient[j] = v[j].scale * (centred - n * v[j].mean_product);
    }
    store_eight(g.dx, own.at(k), finish_gradient(gradient, adds, add[k], masks, x[k]));
  }
}

dim3 cells_of(int rows, const MapShape& map, int clients) {
  dim3 grid = blocks_for((slice_cells(rows, map) + kCells - 1) / kCells, clients);
  grid.z = slices_of(map.channels);
  return grid;
}

}  // namespace

cudaError_t apply_norm(Precision precision, const NormApply& a, cudaStream_t stream) {
  const dim3 cells = cells_of(a.rows, a.map, a.clients);
  return in_precision(precision, [&](auto value) {
    return launch_dependent(apply_kernel<decltype(value)>, cells, kThreads, 0, stream, a);
  });
}

cudaError_t differentiate_norm(Precision precision, const NormGradient& taken,
                               cudaStream_t stream) {
  NormGradient g = taken;
  cudaError_t status = cudaSuccess;
  if (!g.answers) {
    if (g.parts == 0) {
      g.parts = map_parts(g.rows, g.map);
      status = sum_norm_gradients(precision, g, stream);
    }
    if (status == cudaSuccess) status = add_norm_gradients(g, stream);
  }
  if (status != cudaSuccess || g.x == nullptr) return status;
  const dim3 cells = cells_of(g.rows, g.map, g.clients);
  const bool plain = g.add == nullptr && !g.mask && !g.answers;
  return in_precision(precision, [&](auto value) {
    using T = decltype(value);
    const auto kernel = plain ? gradient_kernel<T, true> : gradient_kernel<T, false>;
    return launch_dependent(kernel, cells, kThreads, 0, stream, g);
  });
}

}  // namespace fedsmooth
