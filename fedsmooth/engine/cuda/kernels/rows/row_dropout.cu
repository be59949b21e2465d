#include "fedsmooth/engine/cuda/kernels/rows/row_dropout.h"

#include "fedsmooth/base/normal.h"
#include "fedsmooth/engine/cuda/kernels/wave/batched_values.cuh"

namespace fedsmooth {
namespace {

// Returns the factor of the value at a coordinate of the client's rows, as in draw_kept() of the
// reference.
__device__ float factor_at(const RowDropout& d, int client, int64_t coordinate) {
  const ClientSettings& c = d.draws.settings[client];
  const uint32_t step = c.first_step + *d.draws.step;
  const philox4x32_ctr_t words = philox(d.draws.keys[client], static_cast<uint32_t>(coordinate / 4),
                                        d.sample, step * d.draws.passes + d.draws.pass, c.client);
  const float uniform = static_cast<float>(words.v[coordinate % 4] >> 8) * 0x1p-24f;
  return uniform >= d.rate ? d.factor : 0.0f;
}

// Each thread computes eight channels of a pixel.
template <typename T>
__global__ void __launch_bounds__(kThreads) drop_kernel(RowDropout d) {
  const int client = blockIdx.y, eights = d.map.channels / 8, pixels = d.map.pixels();
  const int64_t cells = static_cast<int64_t>(d.rows) * pixels * eights;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= cells) return;
  const int64_t row = i / eights / pixels, pixel = i / eights % pixels, at = client * cells + i;
  const int first = static_cast<int>(i % eights) * 8;
  const Eight<T> x = load_eight<T>(d.x, at);
  Eight<T> add = {}, mask = {}, y;
  if (d.add != nullptr) add = load_eight<T>(d.add, at);
  if (d.mask != nullptr) mask = load_eight<T>(d.mask, at);
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    float value = to_float(x.value[j]);
    if (d.draws.keys != nullptr && first + j < d.channels) {
      value *= factor_at(d, client, (row * d.channels + first + j) * pixels + pixel);
    }
    if (d.add != nullptr) value += to_float(add.value[j]);
    if (d.mask != nullptr && !(to_float(mask.value[j]) > 0.0f)) value = 0.0f;
    store(y.value + j, value);
  }
  store_eight(d.y, at, y);
}

}  // namespace

cudaError_t drop_values(Precision precision, const RowDropout& d, cudaStream_t stream) {
  const dim3 cells = blocks_for(d.rows * d.map.row_size() / 8, d.clients);
  return launch_in(precision, [&](auto value) {
    drop_kernel<decltype(value)><<<cells, kThreads, 0, stream>>>(d);
  });
}

}  // namespace fedsmooth
