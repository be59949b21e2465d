#include "fedsmooth/engine/cpu/fast_steps.h"

#include <algorithm>

#include "fedsmooth/base/matrix_product.h"
#include "fedsmooth/base/vector_clones.h"
#include "fedsmooth/engine/cpu/activations.h"
#include "fedsmooth/engine/cpu/max_into.h"

namespace fedsmooth {
namespace {

int64_t size_of(const Shape& shape) { return shape[0] * shape[1] * shape[2]; }

// Floats of scratch for the left sides of matrix products: they should stay in the second-level
// cache. Half or four times as many are as fast.
constexpr int64_t kCachedFloats = 128 * 1024;

// The right side of a product, [depth, columns], as panels; columns are padded with zeros to a
// multiple of 16. Not a BLAS: in some of them a row's result depends on its place among the rows.
struct PackedMatrix {
  // The matrix [taps C, K] of weights [K, C, taps].
  PackedMatrix(const Array& weights, int64_t channels)
      : depth(weights.count() / weights.size(0)), columns(weights.size(0)) {
    const int64_t padded = (columns + 15) / 16 * 16, taps = depth / channels;
    Array matrix({1, depth, padded});
    for (int64_t k = 0; k < columns; ++k) {
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t t = 0; t < taps; ++t) {
          matrix.floats()[(t * channels + c) * padded + k] =
              weights.floats()[(k * channels + c) * taps + t];
        }
      }
    }
    panels = pack_panels(matrix);  // [panels, 1, depth, width]
    width = panels.size(3);
  }

  Array panels;
  int64_t depth, columns, width = 0;
};

FEDSMOOTH_VECTOR_CLONES
void add_bias(const float* x, int64_t columns, const float* bias, float* out) {
  for (int64_t c = 0; c < columns; ++c) out[c] = x[c] + bias[c];
}

FEDSMOOTH_VECTOR_CLONES
void add_map(const float* __restrict saved, int64_t size, float* __restrict out) {
  for (int64_t i = 0; i < size; ++i) out[i] += saved[i];
}

// Written so that NaN stays NaN: a broken evaluation must not turn into a vote.
FEDSMOOTH_VECTOR_CLONES
void apply_relu(int64_t size, float* out) {
  for (int64_t i = 0; i < size; ++i) out[i] = out[i] < 0.0f ? 0.0f : out[i];
}

// out [rows, columns] = x times the matrix plus the bias, then what follows; scratch is
// [rows, width].
void multiply_and_add(const float* x, int64_t rows, const PackedMatrix& matrix, const float* bias,
                      const FastEnd& end, const float* saved, float* scratch, float* out) {
  const int64_t width = matrix.width;
  const float* panel = matrix.panels.floats();
  for (int64_t first = 0; first < matrix.columns; first += width, panel += matrix.depth * width) {
    multiply({rows, matrix.depth, width, x, matrix.depth, 1, panel, width, scratch, width});
    const int64_t used = std::min(width, matrix.columns - first);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = r * matrix.columns + first;
      add_bias(scratch + r * width, used, bias + first, out + at);
      if (end.saved) add_map(saved + at, used, out + at);
      if (end.relu) apply_relu(used, out + at);
    }
  }
}

// The window's pixels as one row per output position; `padded` is [H + 2 pad, W + 2 pad, C].
void gather_patches(const float* padded, int64_t width, int64_t channels, const Layer& layer,
                    const Shape& out, float* patches) {
  const int64_t run = layer.kernel * channels;
  for (int64_t y = 0; y < out[1]; ++y) {
    for (int64_t x = 0; x < out[2]; ++x) {
      const float* corner = padded + (y * width + x) * layer.stride * channels;
      for (int64_t i = 0; i < layer.kernel; ++i, patches += run) {
        std::copy_n(corner + i * width * channels, run, patches);
      }
    }
  }
}

void pad_map(const float* x, const Shape& in, int64_t padding, float* padded) {
  const int64_t row = in[2] * in[0], padded_row = (in[2] + 2 * padding) * in[0];
  for (int64_t y = 0; y < in[1]; ++y) {
    std::copy_n(x + y * row, row, padded + (y + padding) * padded_row + padding * in[0]);
  }
}

// Images at a time; divides their number so that all products are alike.
int64_t images_at_a_time(int64_t images, int64_t floats_per_image) {
  int64_t some = std::clamp<int64_t>(kCachedFloats / floats_per_image, 1, images);
  while (images % some != 0) --some;
  return some;
}

}  // namespace

FastStep normalize_step(const Layer& layer, const Shape& in, int64_t images) {
  const auto run = [in, images, mean = std::vector<float>(layer.mean.begin(), layer.mean.end()),
                    sd = std::vector<float>(layer.sd.begin(), layer.sd.end())](
                       const float* x, const float*, float* out, float*) {
    const int64_t channels = in[0], pixels = in[1] * in[2];
    for (int64_t b = 0; b < images; ++b, out += channels * pixels) {
      for (int64_t c = 0; c < channels; ++c, x += pixels) {
        for (int64_t i = 0; i < pixels; ++i) out[i * channels + c] = (x[i] - mean[c]) / sd[c];
      }
    }
  };
  return {run, images * size_of(in)};
}

FastStep window_step(const Layer& layer, const Shape& in, const Shape& out, int64_t images,
                     const FastEnd& end, const Array& weight, const Array& bias) {
  const PackedMatrix matrix(weight, in[0]);
  const int64_t height = in[1] + 2 * layer.padding, width = in[2] + 2 * layer.padding;
  const int64_t padded_size = height * width * in[0];
  const int64_t positions = out[1] * out[2], patch = matrix.depth;
  const int64_t some = images_at_a_time(images, positions * patch);
  const auto run = [=](const float* x, const float* saved, float* y, float* scratch) {
    float *padded = scratch, *patches = scratch + padded_size;
    std::fill_n(padded, padded_size, 0.0f);  // the frame stays zero from image to image
    for (int64_t b = 0; b < images; b += some) {
      for (int64_t i = 0; i < some; ++i) {
        pad_map(x + (b + i) * size_of(in), in, layer.padding, padded);
        gather_patches(padded, width, in[0], layer, out, patches + i * positions * patch);
      }
      const int64_t at = b * size_of(out);
      multiply_and_add(patches, some * positions, matrix, bias.floats(), end,
                       end.saved ? saved + at : nullptr, patches + some * positions * patch,
                       y + at);
    }
  };
  return {run, images * size_of(out), padded_size + some * positions * (patch + matrix.width)};
}

FastStep blocks_step(const Layer& normalize, const Layer& conv, const Shape& in,
                     const ToeplitzShape& shape, int64_t images) {
  std::vector<float> scale;
  for (const double sd : normalize.sd) scale.push_back(static_cast<float>(1.0 / sd));
  const int64_t blocks = shape.n * shape.n * shape.channels;
  const auto run = [=, mean = std::vector<float>(normalize.mean.begin(), normalize.mean.end())](
                       const float* x, const float*, float* out, float* row) {
    for (int64_t b = 0; b < images; ++b, x += size_of(in), out += blocks) {
      cut_blocks(conv, in, shape, x, mean.data(), scale.data(), row, out);
    }
  };
  return {run, images * blocks, shape.n * conv.stride + in[2]};
}

FastStep toeplitz_step(const Layer& layer, const ToeplitzShape& shape, int64_t images,
                       const FastEnd& end, const Array& weight, const Array& bias) {
  const Array kernel = layer.stride > 1 ? block_kernel(weight, layer.stride, shape) : weight;
  const Array panels = pack_panels(toeplitz_weights(shape.scheme, kernel));
  const int64_t outputs = layer.outputs, width = panels.size(3), depth = shape.channels;
  const int64_t products = shape.products(), tiles = shape.tiles() * shape.tiles();
  const int64_t some = images_at_a_time(images, products * tiles * depth), rows = some * tiles;
  const int64_t in = shape.n * shape.n * depth;
  const int64_t out =
      tiles * shape.size().outputs * shape.size().outputs / (end.pool ? 4 : 1) * outputs;
  // One cache line more, or all planes would compete for the same few lines of the cache.
  const int64_t sums_plane = rows * depth + 16, results_plane = rows * width + 16;
  const auto run = [=](const float* x, const float* saved, float* y, float* scratch) {
    float *sums = scratch, *results = scratch + products * sums_plane;
    for (int64_t b = 0; b < images; b += some, x += some * in, y += some * out) {
      toeplitz_inputs(shape, some, x, sums, sums_plane);
      const float* panel = panels.floats();
      for (int64_t k = 0; k < outputs; k += width) {
        for (int64_t p = 0; p < products; ++p, panel += depth * width) {
          multiply({rows, depth, width, sums + p * sums_plane, depth, 1, panel, width,
                    results + p * results_plane, width});
        }
        const float* added = end.saved ? saved + b * out + k : nullptr;
        toeplitz_outputs(shape, some, results, results_plane, width,
                         {bias.floats() + k, end.relu, end.pool, added}, y + k, outputs);
      }
    }
  };
  return {run, images * out, products * (sums_plane + results_plane)};
}

FastStep linear_step(const Layer& layer, const Shape& in, int64_t images, const FastEnd& end,
                     const Array& weight, const Array& bias) {
  // PyTorch flattens [C, H, W]; the maps here are [H, W, C].
  const PackedMatrix matrix(weight, in[0]);
  const auto run = [=](const float* x, const float* saved, float* y, float* scratch) {
    multiply_and_add(x, images, matrix, bias.floats(), end, saved, scratch, y);
  };
  return {run, images * layer.outputs, images * matrix.width};
}

FastStep max_pool_step(const Layer& layer, const Shape& in, const Shape& out, int64_t images) {
  const auto run = [=](const float* x, const float*, float* y, float*) {
    const int64_t channels = in[0];
    for (int64_t b = 0; b < images; ++b, x += size_of(in)) {
      for (int64_t i = 0; i < out[1]; ++i) {
        for (int64_t j = 0; j < out[2]; ++j, y += channels) {
          const float* corner = x + (i * in[2] + j) * layer.stride * channels;
          std::copy_n(corner, channels, y);
          for (int64_t w = 1; w < layer.kernel * layer.kernel; ++w) {
            const int64_t pixel = w / layer.kernel * in[2] + w % layer.kernel;
            max_into(y, corner + pixel * channels, channels);
          }
        }
      }
    }
  };
  return {run, images * size_of(out)};
}

FastStep subsample_step(const Layer& layer, const Shape& in, const Shape& out, int64_t images) {
  const auto run = [=](const float* x, const float*, float* y, float*) {
    std::fill_n(y, images * size_of(out), 0.0f);
    for (int64_t b = 0; b < images; ++b, x += size_of(in)) {
      for (int64_t i = 0; i < out[1] * out[2]; ++i, y += out[0]) {
        const int64_t row = i / out[2] * layer.stride, column = i % out[2] * layer.stride;
        std::copy_n(x + (row * in[2] + column) * in[0], in[0], y);
      }
    }
  };
  return {run, images * size_of(out)};
}

FastStep scale_step(std::vector<float> scale, std::vector<float> shift, const Shape& in,
                    int64_t images) {
  const int64_t channels = in[0], pixels = images * in[1] * in[2];
  const auto run = [=](const float* x, const float*, float* y, float*) {
    for (int64_t p = 0; p < pixels; ++p) {
      for (int64_t c = 0; c < channels; ++c) y[c] = x[c] * scale[c] + shift[c];
      x += channels, y += channels;
    }
  };
  return {run, pixels * channels};
}

FastStep finish_step(const Shape& in, int64_t images, const FastEnd& end) {
  const int64_t size = images * size_of(in);
  const auto run = [=](const float* x, const float* saved, float* y, float*) {
    std::copy_n(x, size, y);
    if (end.saved) add_map(saved, size, y);
    if (end.relu) apply_relu(size, y);
    if (end.activation) activate(*end.activation, size, y);
  };
  return {run, size};
}

FastStep average_pool_step(const Shape& in, int64_t images) {
  const int64_t channels = in[0], pixels = in[1] * in[2];
  const auto run = [=](const float* x, const float*, float* y, float*) {
    for (int64_t b = 0; b < images; ++b, y += channels) {
      std::fill_n(y, channels, 0.0f);
      for (int64_t p = 0; p < pixels; ++p, x += channels) add_map(x, channels, y);
      for (int64_t c = 0; c < channels; ++c) y[c] /= static_cast<float>(pixels);
    }
  };
  return {run, images * channels};
}

}  // namespace fedsmooth
