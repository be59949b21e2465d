#include "fedsmooth/engine/cpu/lane_pools.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "fedsmooth/base/vector_clones.h"
#include "fedsmooth/engine/cpu/max_into.h"

namespace fedsmooth {
namespace {

// Moves the gradient that is left to dx where x has the maximum y. By masks, as g++ makes branches
// of two conditions, not vectors.
FEDSMOOTH_VECTOR_CLONES
void claim(const float* __restrict x, const float* __restrict y, int64_t size,
           float* __restrict left, float* __restrict dx) {
  for (int64_t i = 0; i < size; ++i) {
    const int32_t here = -static_cast<int32_t>(x[i] == y[i]);
    const auto gradient = std::bit_cast<int32_t>(left[i]);
    dx[i] += std::bit_cast<float>(gradient & here);
    left[i] = std::bit_cast<float>(gradient & ~here);
  }
}

FEDSMOOTH_VECTOR_CLONES
void divide(float* values, int64_t size, float divisor) {
  for (int64_t i = 0; i < size; ++i) values[i] /= divisor;
}

}  // namespace

FEDSMOOTH_VECTOR_CLONES
void add_map(const float* __restrict more, int64_t size, float* __restrict to) {
  for (int64_t i = 0; i < size; ++i) to[i] += more[i];
}

void pool(const Layer& layer, const Shape& in, const Shape& out, Lanes lanes, const float* x,
          float* y) {
  const int64_t size = in[0] * lanes.count;
  for (int64_t pixel = 0; pixel < out[1] * out[2]; ++pixel, y += size) {
    const int64_t corner = (pixel / out[2] * in[2] + pixel % out[2]) * layer.stride;
    std::copy_n(x + corner * size, size, y);
    for (int64_t w = 1; w < layer.kernel * layer.kernel; ++w) {
      max_into(y, x + (corner + w / layer.kernel * in[2] + w % layer.kernel) * size, size);
    }
  }
}

void pool_gradient(const Layer& layer, const Shape& in, const Shape& out, Lanes lanes,
                   const float* x, const float* y, const float* dy, float* dx) {
  const int64_t size = in[0] * lanes.count;
  std::fill_n(dx, in[1] * in[2] * size, 0.0f);
  std::vector<float> left(size);
  for (int64_t pixel = 0; pixel < out[1] * out[2]; ++pixel, y += size, dy += size) {
    const int64_t corner = (pixel / out[2] * in[2] + pixel % out[2]) * layer.stride;
    std::copy_n(dy, size, left.begin());
    for (int64_t w = 0; w < layer.kernel * layer.kernel; ++w) {
      const int64_t at = (corner + w / layer.kernel * in[2] + w % layer.kernel) * size;
      claim(x + at, y, size, left.data(), dx + at);
    }
  }
}

void average_pool(const Shape& in, Lanes lanes, const float* x, float* y) {
  const int64_t size = in[0] * lanes.count, pixels = in[1] * in[2];
  std::copy_n(x, size, y);
  for (int64_t p = 1; p < pixels; ++p) add_map(x + p * size, size, y);
  divide(y, size, static_cast<float>(pixels));
}

void average_pool_gradient(const Shape& in, Lanes lanes, const float* dy, float* dx) {
  const int64_t size = in[0] * lanes.count, pixels = in[1] * in[2];
  std::copy_n(dy, size, dx);
  divide(dx, size, static_cast<float>(pixels));
  for (int64_t p = 1; p < pixels; ++p) std::copy_n(dx, size, dx + p * size);
}

void subsample(const Layer& layer, const Shape& in, const Shape& out, Lanes lanes, const float* x,
               float* y) {
  const int64_t kept = in[0] * lanes.count, size = out[0] * lanes.count;
  for (int64_t i = 0; i < out[1] * out[2]; ++i, y += size) {
    const int64_t row = i / out[2] * layer.stride, column = i % out[2] * layer.stride;
    std::copy_n(x + (row * in[2] + column) * kept, kept, y);
    std::fill_n(y + kept, size - kept, 0.0f);
  }
}

void subsample_gradient(const Layer& layer, const Shape& in, const Shape& out, Lanes lanes,
                        const float* dy, float* dx) {
  const int64_t kept = in[0] * lanes.count, size = out[0] * lanes.count;
  std::fill_n(dx, in[1] * in[2] * kept, 0.0f);
  for (int64_t i = 0; i < out[1] * out[2]; ++i, dy += size) {
    const int64_t row = i / out[2] * layer.stride, column = i % out[2] * layer.stride;
    std::copy_n(dy, kept, dx + (row * in[2] + column) * kept);
  }
}

}  // namespace fedsmooth
