#include "fedsmooth/engine/cpu/lane_layers.h"

#include <algorithm>
#include <vector>

#include "fedsmooth/base/matrix_product.h"
#include "fedsmooth/base/vector_clones.h"
#include "fedsmooth/engine/cpu/lane_schemes.h"
#include "fedsmooth/engine/cpu/lane_tiles.h"

namespace fedsmooth {
namespace {

// The scheme for a whole map, if there is one.
const SchemeMatrices* scheme_for(const LaneConvolution& conv) {
  static const SchemeMatrices whole2 = matrices_of<Whole2>(), whole4 = matrices_of<Whole4>();
  if (conv.stride != 1 || conv.in[1] != conv.in[2] || conv.out[0] % 16 != 0) return nullptr;
  if (conv.in[1] == 2 && conv.kernel == 3 && conv.padding == 1) return &whole2;
  if (conv.in[1] == 4 && conv.kernel == 5 && conv.padding == 2) return &whole4;
  return nullptr;
}

// Output pixels with the part of a kernel row that meets real pixels: calls
// use(pixel, first tap, taps, first input pixel) for each.
template <class Use>
void for_each_meeting(const LaneConvolution& conv, const Use& use) {
  const auto [channels, height, width] = conv.in;
  for (int64_t y = 0; y < conv.out[1]; ++y) {
    for (int64_t x = 0; x < conv.out[2]; ++x) {
      const int64_t left = x * conv.stride - conv.padding;
      const int64_t first = std::max<int64_t>(0, -left);
      const int64_t end = std::min(conv.kernel, width - left);
      for (int64_t i = 0; i < conv.kernel; ++i) {
        const int64_t row = y * conv.stride - conv.padding + i;
        if (row < 0 || row >= height || first >= end) continue;
        use(y * conv.out[2] + x, i * conv.kernel + first, end - first, row * width + left + first);
      }
    }
  }
}

// [rows, columns] to [columns, padded], padded with zeros.
FEDSMOOTH_VECTOR_CLONES
void transpose(const float* x, int64_t rows, int64_t columns, int64_t padded, float* out) {
  constexpr int64_t kBlock = 16;
  for (int64_t c = 0; c < columns; c += kBlock) {
    const int64_t last = std::min(c + kBlock, columns);
    for (int64_t r = 0; r < padded; ++r) {
      for (int64_t i = c; i < last; ++i) out[i * padded + r] = r < rows ? x[r * columns + i] : 0.0f;
    }
  }
}

FEDSMOOTH_VECTOR_CLONES
void fill_bias(const float* bias, int64_t pixels, int64_t channels, int64_t lanes, float* y) {
  for (int64_t p = 0; p < pixels; ++p) {
    for (int64_t c = 0; c < channels; ++c, y += lanes) {
      for (int64_t i = 0; i < lanes; ++i) y[i] = bias[c];
    }
  }
}

FEDSMOOTH_VECTOR_CLONES
void add_bias(const float* bias, int64_t pixels, int64_t channels, int64_t lanes, float* y) {
  for (int64_t p = 0; p < pixels; ++p) {
    for (int64_t c = 0; c < channels; ++c, y += lanes) {
      for (int64_t i = 0; i < lanes; ++i) y[i] += bias[c];
    }
  }
}

// x to y through the scheme's products; keeps the sums of x for the kernel's gradient.
void convolve_by(const SchemeMatrices& scheme, const LaneConvolution& conv, Lanes lanes,
                 const float* kernel, const float* x, float* y, bool fresh, LaneScratch& s) {
  const int64_t channels = conv.in[0], outputs = conv.out[0],
                planes = scheme.products * scheme.products;
  const int64_t in = channels * lanes.count, out = outputs * lanes.count;
  float* transformed = reserve(s.transformed, planes * channels * outputs);
  if (fresh) transform(scheme.kernel, false, kernel, channels * outputs, s.rows, transformed);
  float* sums = reserve(s.sums, planes * in);
  transform(scheme.inputs, false, x, in, s.rows, sums);
  float* products = reserve(s.products, planes * out);
  for (int64_t p = 0; p < planes; ++p) {
    multiply({outputs, channels, lanes.count, transformed + p * channels * outputs, 1, outputs,
              sums + p * in, lanes.count, products + p * out, lanes.count});
  }
  transform(scheme.outputs, false, products, out, s.rows, y);
}

void convolve_gradient_by(const SchemeMatrices& scheme, const LaneConvolution& conv, Lanes lanes,
                          const float* dy, float* dx, LaneScratch& s) {
  const int64_t channels = conv.in[0], outputs = conv.out[0],
                planes = scheme.products * scheme.products;
  const int64_t in = channels * lanes.count, out = outputs * lanes.count;
  const float* transformed = s.transformed.data();
  float* products = reserve(s.products, planes * (out + in));
  float* sums = products + planes * out;  // those of x are kept
  transform(scheme.outputs, true, dy, out, s.rows, products);
  for (int64_t p = 0; p < planes; ++p) {
    multiply({channels, outputs, lanes.count, transformed + p * channels * outputs, outputs, 1,
              products + p * out, lanes.count, sums + p * in, lanes.count});
  }
  transform(scheme.inputs, true, sums, in, s.rows, dx);
}

std::vector<float> kernel_gradient_by(const SchemeMatrices& scheme, const LaneConvolution& conv,
                                      Lanes lanes, const float* dy, LaneScratch& s) {
  const int64_t channels = conv.in[0], outputs = conv.out[0],
                planes = scheme.products * scheme.products;
  const int64_t in = channels * lanes.count, out = outputs * lanes.count;
  float* products = reserve(s.products, planes * out + out);
  float* turned = products + planes * out;
  transform(scheme.outputs, true, dy, out, s.rows, products);
  std::vector<float> gradient(planes * channels * outputs);
  for (int64_t p = 0; p < planes; ++p) {
    transpose(products + p * out, outputs, lanes.count, outputs, turned);
    multiply({channels, lanes.batch, outputs, s.sums.data() + p * in, lanes.count, 1, turned,
              outputs, gradient.data() + p * channels * outputs, outputs});
  }
  std::vector<float> kernel(conv.kernel * conv.kernel * channels * outputs);
  transform(scheme.kernel, true, gradient.data(), channels * outputs, s.rows, kernel.data());
  return kernel;
}

FEDSMOOTH_VECTOR_CLONES
void sum_lanes(const float* dy, int64_t pixels, int64_t channels, int64_t lanes, float* sums) {
  for (int64_t p = 0; p < pixels; ++p) {
    for (int64_t c = 0; c < channels; ++c, dy += lanes) {
      float partial[16] = {};
      for (int64_t i = 0; i < lanes; i += 16) {
        for (int64_t j = 0; j < 16; ++j) partial[j] += dy[i + j];
      }
      for (const float part : partial) sums[c] += part;
    }
  }
}

}  // namespace

FEDSMOOTH_VECTOR_CLONES
void relu(float* y, int64_t size) {
  for (int64_t i = 0; i < size; ++i) y[i] = y[i] < 0.0f ? 0.0f : y[i];
}

void convolve(const LaneConvolution& conv, Lanes lanes, const float* kernel, const float* bias,
              const float* x, float* y, bool fresh, LaneScratch& scratch) {
  const int64_t outputs = conv.out[0], pixels = conv.out[1] * conv.out[2], n = lanes.count;
  if (conv.tiles) {
    convolve_by_tiles(conv, lanes, kernel, x, y, fresh, scratch);
    if (conv.bias) add_bias(bias, pixels, outputs, n, y);
  } else if (const SchemeMatrices* scheme = scheme_for(conv)) {
    convolve_by(*scheme, conv, lanes, kernel, x, y, fresh, scratch);
    add_bias(bias, pixels, outputs, n, y);
  } else {
    fill_bias(bias, pixels, outputs, n, y);
    const int64_t channels = conv.in[0];
    for_each_meeting(conv, [&](int64_t pixel, int64_t tap, int64_t taps, int64_t from) {
      multiply({outputs, taps * channels, n, kernel + tap * channels * outputs, 1, outputs,
                x + from * channels * n, n, y + pixel * outputs * n, n, /*add=*/true});
    });
  }
  if (conv.relu) relu(y, pixels * outputs * n);
}

FEDSMOOTH_VECTOR_CLONES
void relu_gradient(const float* __restrict y, int64_t size, float* __restrict dy) {
  for (int64_t i = 0; i < size; ++i) dy[i] = y[i] > 0.0f ? dy[i] : 0.0f;
}

void convolve_gradient(const LaneConvolution& conv, Lanes lanes, const float* kernel,
                       const float* dy, float* dx, LaneScratch& scratch) {
  if (conv.tiles) return convolve_gradient_by_tiles(conv, lanes, kernel, dy, dx, scratch);
  if (const SchemeMatrices* scheme = scheme_for(conv)) {
    return convolve_gradient_by(*scheme, conv, lanes, dy, dx, scratch);
  }
  const int64_t channels = conv.in[0], outputs = conv.out[0], n = lanes.count;
  std::fill_n(dx, conv.in[0] * conv.in[1] * conv.in[2] * n, 0.0f);
  for_each_meeting(conv, [&](int64_t pixel, int64_t tap, int64_t taps, int64_t from) {
    multiply({taps * channels, outputs, n, kernel + tap * channels * outputs, outputs, 1,
              dy + pixel * outputs * n, n, dx + from * channels * n, n, /*add=*/true});
  });
}

KernelGradient kernel_gradient(const LaneConvolution& conv, Lanes lanes, const float* x,
                               const float* dy, LaneScratch& scratch) {
  const int64_t channels = conv.in[0], outputs = conv.out[0], n = lanes.count;
  const int64_t pixels = conv.out[1] * conv.out[2], padded = conv.padded_outputs();
  KernelGradient gradient;
  if (conv.bias) {
    gradient.bias.resize(outputs);
    sum_lanes(dy, pixels, outputs, n, gradient.bias.data());
  }
  if (conv.tiles) {
    gradient.kernel = kernel_gradient_by_tiles(conv, lanes, x, dy, scratch);
    return gradient;
  }
  if (const SchemeMatrices* scheme = scheme_for(conv)) {
    gradient.kernel = kernel_gradient_by(*scheme, conv, lanes, dy, scratch);
    return gradient;
  }
  float* turned = reserve(scratch.products, pixels * n * padded);
  for (int64_t p = 0; p < pixels; ++p) {
    transpose(dy + p * outputs * n, outputs, n, padded, turned + p * n * padded);
  }
  const int64_t rows = conv.kernel * conv.kernel * channels;
  std::vector<float> kernel(rows * padded);
  for_each_meeting(conv, [&](int64_t pixel, int64_t tap, int64_t taps, int64_t from) {
    multiply({taps * channels, lanes.batch, padded, x + from * channels * n, n, 1,
              turned + pixel * n * padded, padded, kernel.data() + tap * channels * padded, padded,
              /*add=*/true});
  });
  gradient.kernel.resize(rows * outputs);
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(kernel.data() + r * padded, outputs, gradient.kernel.data() + r * outputs);
  }
  return gradient;
}

}  // namespace fedsmooth
