#include "fedsmooth/engine/cuda/kernels/rows/row_float.h"

#include "fedsmooth/engine/cuda/kernels/rows/row_norm.h"
#include "fedsmooth/engine/cuda/kernels/wave/batched_values.cuh"

namespace fedsmooth {
namespace {

// Returns the coordinate that a tap of output coordinate `out` reads; -1: a zero.
__device__ int read_from(int out, int tap, int stride, int padding, int spread, int size) {
  const int at = out * stride + tap - padding;
  return at >= 0 && at % spread == 0 && at / spread < size ? at / spread : -1;
}

// Each thread computes a value.
__global__ void convolve_kernel(RowConvolution c) {
  const int client = blockIdx.y;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= c.rows * c.out.row_size()) return;
  const int k = static_cast<int>(i % c.out.channels);
  const int pixel = static_cast<int>(i / c.out.channels % c.out.pixels());
  const int64_t row = client * static_cast<int64_t>(c.rows) + i / c.out.row_size();
  const float* x = static_cast<const float*>(c.x) + row * c.in.row_size();
  const float* weights = static_cast<const float*>(c.weights) + client * c.weights_client;
  float sum = 0.0f;
  for (int tap = 0; tap < c.kernel * c.kernel; ++tap) {
    const int line =
        read_from(pixel / c.out.width, tap / c.kernel, c.stride, c.padding, c.spread, c.in.height);
    const int column =
        read_from(pixel % c.out.width, tap % c.kernel, c.stride, c.padding, c.spread, c.in.width);
    if (line < 0 || column < 0) continue;
    const float* from = x + (line * c.in.width + column) * c.in.channels;
    const float* by = weights + (tap * c.out.channels + k) * c.in.channels;
    for (int j = 0; j < c.in.channels; ++j) sum = fmaf(from[j], by[j], sum);
  }
  const int64_t at = client * c.rows * c.out.row_size() + i;
  if (c.bias != nullptr) sum += c.bias[client * c.bias_client + k];
  if (c.add != nullptr) sum += static_cast<const float*>(c.add)[at];
  if (c.relu && sum < 0.0f) sum = 0.0f;
  if (c.mask != nullptr && !(static_cast<const float*>(c.mask)[at] > 0.0f)) sum = 0.0f;
  static_cast<float*>(c.y)[at] = sum;
}

// Each thread computes a piece of a weight's gradient.
__global__ void gradient_kernel(RowGradient g) {
  const int piece = blockIdx.y, client = blockIdx.z, c = g.forward.in.channels,
            k = g.forward.out.channels;
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= g.forward.kernel * g.forward.kernel * k * c) return;
  const int tap = i / (k * c), out = i / c % k, in = i % c;
  const int begin = static_cast<int>(static_cast<int64_t>(g.forward.rows) * piece / g.pieces);
  const int end = static_cast<int>(static_cast<int64_t>(g.forward.rows) * (piece + 1) / g.pieces);
  float sum = 0.0f;
  for (int row = begin; row < end; ++row) {
    const int64_t at = static_cast<int64_t>(client) * g.forward.rows + row;
    const float* x = static_cast<const float*>(g.forward.x) + at * g.forward.in.row_size();
    const float* dy = static_cast<const float*>(g.dy) + at * g.forward.out.row_size();
    for (int pixel = 0; pixel < g.forward.out.pixels(); ++pixel) {
      const int line = read_from(pixel / g.forward.out.width, tap / g.forward.kernel,
                                 g.forward.stride, g.forward.padding, 1, g.forward.in.height);
      const int column = read_from(pixel % g.forward.out.width, tap % g.forward.kernel,
                                   g.forward.stride, g.forward.padding, 1, g.forward.in.width);
      if (line < 0 || column < 0) continue;
      sum = fmaf(x[(line * g.forward.in.width + column) * c + in], dy[pixel * k + out], sum);
    }
  }
  g.gradient[(static_cast<int64_t>(piece) * g.forward.clients + client) * g.gradient_client + i] =
      sum;
}

}  // namespace

cudaError_t convolve_float_rows(const RowConvolution& c, cudaStream_t stream) {
  convolve_kernel<<<blocks_for(c.rows * c.out.row_size(), c.clients), kThreads, 0, stream>>>(c);
  if (c.sums == nullptr) return cudaGetLastError();
  return sum_map(Precision::kFloat32, {c.clients, c.rows, c.out, c.y, c.sums}, stream);
}

cudaError_t differentiate_float_kernel(const RowGradient& g, cudaStream_t stream) {
  const dim3 weights = blocks_for(
      g.forward.kernel * g.forward.kernel * g.forward.in.channels * g.forward.out.channels, 1);
  gradient_kernel<<<dim3(weights.x, g.pieces, g.forward.clients), kThreads, 0, stream>>>(g);
  return cudaGetLastError();
}

}  // namespace fedsmooth
