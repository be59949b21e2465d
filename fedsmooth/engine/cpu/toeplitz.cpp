#include "fedsmooth/engine/cpu/toeplitz.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "fedsmooth/base/vector_clones.h"
#include "fedsmooth/engine/cpu/toeplitz_lanes.h"

namespace fedsmooth {
namespace {

constexpr int64_t kLanes = kToeplitzLanes, kMaxWidth = 32;

// The sums of one window, for all channels.
template <class S>
FEDSMOOTH_INLINE void transform_inputs(const ToeplitzShape& shape, int64_t top, int64_t left,
                                       const float* x, float* sums, int64_t plane) {
  for (int64_t c = 0; c < shape.channels; c += kLanes) {
    along_both_axes<S::kInputs>(
        [&](int64_t i, int64_t j, ToeplitzLanes& to) FEDSMOOTH_INLINE_LAMBDA {
          const int64_t y = top + i, z = left + j;
          to = ToeplitzLanes{};
          if (y >= 0 && y < shape.n && z >= 0 && z < shape.n) {
            load_lanes(x + (y * shape.n + z) * shape.channels + c, to);
          }
        },
        [&](int64_t p, const ToeplitzLanes& sum)
            FEDSMOOTH_INLINE_LAMBDA { store_lanes(sum, sums + c + p * plane); });
  }
}

template <class S>
FEDSMOOTH_INLINE void all_inputs(const ToeplitzShape& shape, int64_t images, const float* x,
                                 float* sums, int64_t plane) {
  const int64_t tiles = shape.tiles(), shift = S::kSize.skipped - shape.padding;
  for (int64_t b = 0; b < images; ++b, x += shape.n * shape.n * shape.channels) {
    for (int64_t tile = 0; tile < tiles * tiles; ++tile, sums += shape.channels) {
      transform_inputs<S>(shape, tile / tiles * S::kSize.outputs + shift,
                          tile % tiles * S::kSize.outputs + shift, x, sums, plane);
    }
  }
}

// One tile's products to y [outputs, outputs, width], for sixteen channels.
template <class S>
FEDSMOOTH_INLINE void transform_outputs(const float* products, int64_t plane, int64_t width,
                                        float* y) {
  along_both_axes<S::kOutputs>(
      [&](int64_t p, int64_t q, ToeplitzLanes& to) FEDSMOOTH_INLINE_LAMBDA {
        load_lanes(products + (p * S::kSize.products + q) * plane, to);
      },
      [&](int64_t i, const ToeplitzLanes& sum)
          FEDSMOOTH_INLINE_LAMBDA { store_lanes(sum, y + i * width); });
}

// NaN wins: a broken evaluation must not turn into a vote.
FEDSMOOTH_INLINE void max_into(float* __restrict a, const float* __restrict b, int64_t width) {
  for (int64_t c = 0; c < width; ++c) a[c] = (a[c] >= b[c]) | (a[c] != a[c]) ? a[c] : b[c];
}

// Adds the bias to a tile's y [outputs, outputs, width], after the maximum, which does not mind,
// and writes it at out, a map of rows of `row` floats; `saved` lies as `out` does. In plain loops
// of a length not known when compiling: these g++ vectorises, comparisons of Lanes it takes apart.
template <class S>
FEDSMOOTH_INLINE void finish(float* __restrict y, int64_t width, const ToeplitzEnd& end,
                             const float* __restrict saved, float* __restrict out, int64_t row,
                             int64_t channels) {
  constexpr int kOutputs = S::kSize.outputs;
  const int step = end.pool ? 2 : 1;
  const float floor = end.relu ? 0.0f : -std::numeric_limits<float>::infinity();
  for (int i = 0; i < kOutputs; i += step, out += row) {
    for (int j = 0; j < kOutputs; j += step) {
      float* value = y + (i * kOutputs + j) * width;
      if (end.pool) {
        max_into(value, value + width, width);
        max_into(value, value + kOutputs * width, width);
        max_into(value, value + (kOutputs + 1) * width, width);
      }
      float* __restrict to = out + j / step * channels;
      const float* __restrict bias = end.bias;
      if (saved != nullptr) {
        const float* __restrict other = saved + i / step * row + j / step * channels;
        for (int64_t c = 0; c < width; ++c) {
          const float sum = value[c] + bias[c] + other[c];
          to[c] = sum < floor ? floor : sum;
        }
        continue;
      }
      for (int64_t c = 0; c < width; ++c) {
        const float sum = value[c] + bias[c];
        to[c] = sum < floor ? floor : sum;
      }
    }
  }
}

template <class S>
FEDSMOOTH_INLINE void all_outputs(const ToeplitzShape& shape, int64_t images, const float* products,
                                  int64_t plane, int64_t width, const ToeplitzEnd& end, float* out,
                                  int64_t channels) {
  constexpr int64_t kOutputs = S::kSize.outputs;
  const int64_t tiles = shape.tiles(), side = end.pool ? kOutputs / 2 : kOutputs;
  const int64_t row = tiles * side * channels;
  for (int64_t b = 0; b < images; ++b, out += tiles * side * row) {
    for (int64_t tile = 0; tile < tiles * tiles; ++tile, products += width) {
      alignas(64) float y[kOutputs * kOutputs * kMaxWidth];
      for (int64_t c = 0; c < width; c += kLanes) {
        transform_outputs<S>(products + c, plane, width, y + c);
      }
      const int64_t at = tile / tiles * side * row + tile % tiles * side * channels;
      const int64_t image = b * tiles * side * row;
      finish<S>(y, width, end, end.saved ? end.saved + image + at : nullptr, out + at, row,
                channels);
    }
  }
}

// The scheme's sums of taps, [products, taps].
template <class S>
std::vector<double> kernel_matrix() {
  std::vector<double> entries;
  for (const auto& row : S::kKernel) entries.insert(entries.end(), row.begin(), row.end());
  return entries;
}

// Calls f with the scheme as a type.
template <class F>
FEDSMOOTH_INLINE auto with_type(Scheme scheme, F&& f) {
  switch (scheme) {
    case Scheme::kWhole2:
      return f(Whole2{});
    case Scheme::kWhole4:
      return f(Whole4{});
    default:
      return f(Tile4{});
  }
}

// The scheme for a square map of size n, if there is one.
std::optional<Scheme> scheme_for(int64_t n, int64_t taps, int64_t padding) {
  if (n == 2 && taps == 3 && padding == 1) return Scheme::kWhole2;
  if (n == 4 && taps == 5 && padding == 2) return Scheme::kWhole4;
  const int64_t outputs = n + 2 * padding - 2;
  if (taps == 3 && outputs > 0 && outputs % 4 == 0) return Scheme::kTile4;
  return {};
}

// A stride known when compiling makes the copies of a block's rows single instructions.
template <int kStride>
FEDSMOOTH_INLINE void copy_rows(const float* row, int64_t n, int64_t depth, float* out) {
  for (int64_t i = 0; i < n; ++i)
    std::memcpy(out + i * depth, row + i * kStride, kStride * sizeof(float));
}

}  // namespace

SchemeSize ToeplitzShape::size() const {
  return with_type(scheme, [](auto s) { return decltype(s)::kSize; });
}

int64_t ToeplitzShape::products() const { return size().products * size().products; }

int64_t ToeplitzShape::tiles() const {
  return (n + 2 * padding - size().taps + 1) / size().outputs;
}

std::optional<ToeplitzShape> toeplitz_shape(const Layer& conv, const Shape& in) {
  if (in[1] != in[2] || conv.outputs % kLanes != 0) return {};
  if (conv.stride == 1) {
    const auto scheme = scheme_for(in[1], conv.kernel, conv.padding);
    if (!scheme || in[0] % kLanes != 0) return {};
    return ToeplitzShape{*scheme, in[1], conv.padding, in[0]};
  }
  if ((conv.stride != 2 && conv.stride != 4) || conv.padding >= conv.kernel) return {};
  const int64_t taps = (conv.kernel + conv.stride - 1) / conv.stride;
  const int64_t n = (in[1] + 2 * conv.padding - conv.kernel) / conv.stride + taps;
  const auto scheme = scheme_for(n, taps, 0);
  if (!scheme) return {};
  const int64_t depth = (conv.stride * conv.stride * in[0] + kLanes - 1) / kLanes * kLanes;
  return ToeplitzShape{*scheme, n, 0, depth};
}

Array block_kernel(const Array& kernel, int64_t stride, const ToeplitzShape& shape) {
  const int64_t outputs = kernel.size(0), channels = kernel.size(1), size = kernel.size(2);
  const int64_t taps = shape.size().taps;
  Array blocks({outputs, shape.channels, taps, taps});
  for (int64_t k = 0; k < outputs; ++k) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t y = 0; y < size; ++y) {
        for (int64_t x = 0; x < size; ++x) {
          const int64_t channel = (c * stride + y % stride) * stride + x % stride;
          blocks
              .floats()[((k * shape.channels + channel) * taps + y / stride) * taps + x / stride] =
              kernel.floats()[((k * channels + c) * size + y) * size + x];
        }
      }
    }
  }
  return blocks;
}

FEDSMOOTH_VECTOR_CLONES
void cut_blocks(const Layer& conv, const Shape& in, const ToeplitzShape& shape, const float* x,
                const float* mean, const float* scale, float* __restrict row, float* out) {
  const int64_t stride = conv.stride, n = shape.n, depth = shape.channels;
  std::fill_n(row, n * stride + in[2], 0.0f);
  std::fill_n(out, n * n * depth, 0.0f);
  for (int64_t c = 0; c < in[0]; ++c) {
    for (int64_t y = conv.padding; y < conv.padding + in[1]; ++y, x += in[2]) {
      if (y >= n * stride) continue;  // below the last window
      for (int64_t i = 0; i < in[2]; ++i) row[conv.padding + i] = (x[i] - mean[c]) * scale[c];
      float* to = out + y / stride * n * depth + (c * stride + y % stride) * stride;
      if (stride == 2) {
        copy_rows<2>(row, n, depth, to);
      } else {
        copy_rows<4>(row, n, depth, to);
      }
    }
  }
}

// In double, rounded once: sums over i and j of g[p, i] g[q, j] kernel[k, c, i, j].
Array toeplitz_weights(Scheme scheme, const Array& kernel) {
  const std::vector<double> g =
      with_type(scheme, [](auto s) { return kernel_matrix<decltype(s)>(); });
  const int64_t outputs = kernel.size(0), channels = kernel.size(1), taps = kernel.size(2);
  const int64_t products = std::ssize(g) / taps;
  Array weights({products * products, channels, outputs});
  for (int64_t k = 0; k < outputs; ++k) {
    for (int64_t c = 0; c < channels; ++c) {
      const float* from = kernel.floats() + (k * channels + c) * taps * taps;
      for (int64_t p = 0; p < products; ++p) {
        for (int64_t q = 0; q < products; ++q) {
          double sum = 0;
          for (int64_t i = 0; i < taps; ++i) {
            for (int64_t j = 0; j < taps; ++j) {
              sum += g[p * taps + i] * g[q * taps + j] * from[i * taps + j];
            }
          }
          weights.floats()[((p * products + q) * channels + c) * outputs + k] =
              static_cast<float>(sum);
        }
      }
    }
  }
  return weights;
}

FEDSMOOTH_VECTOR_CLONES
void toeplitz_inputs(const ToeplitzShape& shape, int64_t images, const float* x, float* sums,
                     int64_t plane) {
  switch (shape.scheme) {
    case Scheme::kWhole2:
      return all_inputs<Whole2>(shape, images, x, sums, plane);
    case Scheme::kWhole4:
      return all_inputs<Whole4>(shape, images, x, sums, plane);
    case Scheme::kTile4:
      return all_inputs<Tile4>(shape, images, x, sums, plane);
  }
}

FEDSMOOTH_VECTOR_CLONES
void toeplitz_outputs(const ToeplitzShape& shape, int64_t images, const float* products,
                      int64_t plane, int64_t width, const ToeplitzEnd& end, float* out,
                      int64_t channels) {
  switch (shape.scheme) {
    case Scheme::kWhole2:
      return all_outputs<Whole2>(shape, images, products, plane, width, end, out, channels);
    case Scheme::kWhole4:
      return all_outputs<Whole4>(shape, images, products, plane, width, end, out, channels);
    case Scheme::kTile4:
      return all_outputs<Tile4>(shape, images, products, plane, width, end, out, channels);
  }
}

}  // namespace fedsmooth
