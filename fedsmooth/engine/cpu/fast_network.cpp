#include "fedsmooth/engine/cpu/fast_network.h"

#include <algorithm>
#include <optional>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/matrix_product.h"
#include "fedsmooth/base/vector_clones.h"
#include "fedsmooth/engine/cpu/max_into.h"
#include "fedsmooth/engine/cpu/toeplitz.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;
using Step = FastNetwork::Step;

// Floats of scratch for the left sides of matrix products: they should stay in the second-level
// cache. Half or four times as many are as fast.
constexpr int64_t kCachedFloats = 128 * 1024;

int64_t size_of(const Shape& shape) { return shape[0] * shape[1] * shape[2]; }

// The right side of a product, [depth, columns], as panels; columns are padded with zeros to a
// multiple of 16. Not a BLAS: in some of them a row's result depends on its place among the rows.
struct PackedMatrix {
  // Of weights [K, C, taps], the matrix [taps C, K].
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
void add_bias(const float* x, int64_t columns, const float* bias, bool relu, float* out) {
  for (int64_t c = 0; c < columns; ++c) out[c] = x[c] + bias[c];
  if (relu) {
    // Written so that NaN stays NaN: a broken evaluation must not turn into a vote.
    for (int64_t c = 0; c < columns; ++c) out[c] = out[c] < 0.0f ? 0.0f : out[c];
  }
}

// out [rows, columns] = x times the matrix plus the bias, then ReLU; scratch is [rows, width].
void multiply_and_add(const float* x, int64_t rows, const PackedMatrix& matrix, const float* bias,
                      bool relu, float* scratch, float* out) {
  const int64_t width = matrix.width;
  const float* panel = matrix.panels.floats();
  for (int64_t first = 0; first < matrix.columns; first += width, panel += matrix.depth * width) {
    multiply({rows, matrix.depth, width, x, matrix.depth, 1, panel, width, scratch, width});
    const int64_t used = std::min(width, matrix.columns - first);
    for (int64_t r = 0; r < rows; ++r) {
      add_bias(scratch + r * width, used, bias + first, relu, out + r * matrix.columns + first);
    }
  }
}

Array bias_of(const Layer& layer, Weights::const_iterator& next) {
  return layer.bias ? *next++ : Array({layer.outputs});
}

// [B, C, H, W] to normalised [B, H, W, C].
Step normalize_step(const Layer& layer, const Shape& in, int64_t batch) {
  const auto run = [in, batch, mean = std::vector<float>(layer.mean.begin(), layer.mean.end()),
                    sd = std::vector<float>(layer.sd.begin(), layer.sd.end())](const float* x,
                                                                               float* out, float*) {
    const int64_t channels = in[0], pixels = in[1] * in[2];
    for (int64_t b = 0; b < batch; ++b, out += channels * pixels) {
      for (int64_t c = 0; c < channels; ++c, x += pixels) {
        for (int64_t i = 0; i < pixels; ++i) out[i * channels + c] = (x[i] - mean[c]) / sd[c];
      }
    }
  };
  return {run, batch * size_of(in)};
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

// Images at a time; divides the batch so that all products are alike.
int64_t images_at_a_time(int64_t batch, int64_t floats_per_image) {
  int64_t images = std::clamp<int64_t>(kCachedFloats / floats_per_image, 1, batch);
  while (batch % images != 0) --images;
  return images;
}

Step window_step(const Layer& layer, const Shape& in, const Shape& out, int64_t batch, bool relu,
                 Weights::const_iterator& next) {
  const PackedMatrix matrix(*next++, in[0]);
  const Array bias = bias_of(layer, next);
  const int64_t height = in[1] + 2 * layer.padding, width = in[2] + 2 * layer.padding;
  const int64_t padded_size = height * width * in[0];
  const int64_t positions = out[1] * out[2], patch = matrix.depth;
  const int64_t images = images_at_a_time(batch, positions * patch);
  const auto run = [=](const float* x, float* y, float* scratch) {
    float *padded = scratch, *patches = scratch + padded_size;
    std::fill_n(padded, padded_size, 0.0f);  // the frame stays zero from image to image
    for (int64_t b = 0; b < batch; b += images) {
      for (int64_t i = 0; i < images; ++i) {
        pad_map(x + (b + i) * size_of(in), in, layer.padding, padded);
        gather_patches(padded, width, in[0], layer, out, patches + i * positions * patch);
      }
      float* result = y + b * size_of(out);
      multiply_and_add(patches, images * positions, matrix, bias.floats(), relu,
                       patches + images * positions * patch, result);
    }
  };
  return {run, batch * size_of(out), padded_size + images * positions * (patch + matrix.width)};
}

Step blocks_step(const Layer& normalize, const Layer& conv, const Shape& in,
                 const ToeplitzShape& shape, int64_t batch) {
  std::vector<float> scale;
  for (const double sd : normalize.sd) scale.push_back(static_cast<float>(1.0 / sd));
  const int64_t blocks = shape.n * shape.n * shape.channels;
  const auto run = [=, mean = std::vector<float>(normalize.mean.begin(), normalize.mean.end())](
                       const float* x, float* out, float* row) {
    for (int64_t b = 0; b < batch; ++b, x += size_of(in), out += blocks) {
      cut_blocks(conv, in, shape, x, mean.data(), scale.data(), row, out);
    }
  };
  return {run, batch * blocks, shape.n * conv.stride + in[2]};
}

Step toeplitz_step(const Layer& layer, const ToeplitzShape& shape, int64_t batch, bool relu,
                   bool pool, Weights::const_iterator& next) {
  const Array kernel = layer.stride > 1 ? block_kernel(*next, layer.stride, shape) : *next;
  ++next;
  const Array bias = bias_of(layer, next);
  const Array panels = pack_panels(toeplitz_weights(shape.scheme, kernel));
  const int64_t outputs = layer.outputs, width = panels.size(3), depth = shape.channels;
  const int64_t products = shape.products(), tiles = shape.tiles() * shape.tiles();
  const int64_t images = images_at_a_time(batch, products * tiles * depth), rows = images * tiles;
  const int64_t in = shape.n * shape.n * depth;
  const int64_t out =
      tiles * shape.size().outputs * shape.size().outputs / (pool ? 4 : 1) * outputs;
  // One cache line more, or all planes would compete for the same few lines of the cache.
  const int64_t sums_plane = rows * depth + 16, results_plane = rows * width + 16;
  const auto run = [=](const float* x, float* y, float* scratch) {
    float *sums = scratch, *results = scratch + products * sums_plane;
    for (int64_t b = 0; b < batch; b += images, x += images * in, y += images * out) {
      toeplitz_inputs(shape, images, x, sums, sums_plane);
      const float* panel = panels.floats();
      for (int64_t k = 0; k < outputs; k += width) {
        for (int64_t p = 0; p < products; ++p, panel += depth * width) {
          multiply({rows, depth, width, sums + p * sums_plane, depth, 1, panel, width,
                    results + p * results_plane, width});
        }
        toeplitz_outputs(shape, images, results, results_plane, width,
                         {bias.floats() + k, relu, pool}, y + k, outputs);
      }
    }
  };
  return {run, batch * out, products * (sums_plane + results_plane)};
}

Step linear_step(const Layer& layer, const Shape& in, int64_t batch, bool relu,
                 Weights::const_iterator& next) {
  // PyTorch flattens [C, H, W]; the maps here are [H, W, C].
  const PackedMatrix matrix(*next++, in[0]);
  const Array bias = bias_of(layer, next);
  const auto run = [=](const float* x, float* y, float* scratch) {
    multiply_and_add(x, batch, matrix, bias.floats(), relu, scratch, y);
  };
  return {run, batch * layer.outputs, batch * matrix.width};
}

Step max_pool_step(const Layer& layer, const Shape& in, const Shape& out, int64_t batch) {
  const auto run = [=](const float* x, float* y, float*) {
    const int64_t channels = in[0];
    for (int64_t b = 0; b < batch; ++b, x += size_of(in)) {
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
  return {run, batch * size_of(out)};
}

Step relu_step(const Shape& in, int64_t batch) {
  const auto run = [n = batch * size_of(in)](const float* x, float* y, float*) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] < 0.0f ? 0.0f : x[i];
  };
  return {run, batch * size_of(in)};
}

}  // namespace

bool FastNetwork::supports(const Network& network) {
  const auto& layers = network.layers;
  return !layers.empty() && layers[0].kind == Kind::kNormalize &&
         std::all_of(layers.begin() + 1, layers.end(), [](const Layer& layer) {
           return layer.kind == Kind::kConv || layer.kind == Kind::kRelu ||
                  layer.kind == Kind::kMaxPool || layer.kind == Kind::kDropout ||
                  layer.kind == Kind::kLinear;
         });
}

FastNetwork::FastNetwork(const Network& network, const Weights& weights, int64_t batch)
    : batch_(batch), classes_(output_shape(network)[0]) {
  check(supports(network), "FastNetwork: network {} has other layers", network.name);
  const auto& layers = network.layers;
  const auto is = [&](size_t i, Kind kind) { return i < layers.size() && layers[i].kind == kind; };
  auto next = weights.begin();
  Shape shape = network.input;
  std::optional<ToeplitzShape> blocks;  // of a strided convolution that comes next
  for (size_t i = 0; i < layers.size(); ++i) {
    const Layer& layer = layers[i];
    const Shape in = shape;
    shape = shape_after(layer, in);
    // A ReLU right after a product is applied with the bias.
    const bool product = layer.kind == Kind::kConv || layer.kind == Kind::kLinear;
    const bool relu = product && is(i + 1, Kind::kRelu);
    if (relu) ++i;
    if (layer.kind == Kind::kNormalize) {
      const bool strided = is(i + 1, Kind::kConv) && layers[i + 1].stride > 1;
      if (strided) blocks = toeplitz_shape(layers[i + 1], in);
      steps_.push_back(blocks ? blocks_step(layer, layers[i + 1], in, *blocks, batch)
                              : normalize_step(layer, in, batch));
    } else if (layer.kind == Kind::kLinear) {
      steps_.push_back(linear_step(layer, in, batch, relu, next));
    } else if (layer.kind == Kind::kMaxPool) {
      steps_.push_back(max_pool_step(layer, in, shape, batch));
    } else if (layer.kind == Kind::kRelu) {
      steps_.push_back(relu_step(in, batch));
    } else if (layer.kind == Kind::kConv) {
      const auto toeplitz = layer.stride == 1 ? toeplitz_shape(layer, in) : blocks;
      // So is pooling, where tiles are whole windows.
      const bool pool = toeplitz && is(i + 1, Kind::kMaxPool) && layers[i + 1].kernel == 2 &&
                        layers[i + 1].stride == 2;
      steps_.push_back(toeplitz ? toeplitz_step(layer, *toeplitz, batch, relu, pool, next)
                                : window_step(layer, in, shape, batch, relu, next));
      if (pool) shape = shape_after(layers[++i], shape);
      blocks.reset();
    }
  }
}

Array FastNetwork::operator()(const Array& images) {
  check(images.size(0) == batch_, "FastNetwork: images [{}], expected a batch of {}",
        fmt::join(images.sizes(), ", "), batch_);
  if (maps_[0].empty()) {
    int64_t map = 0, scratch = 1;
    for (const Step& step : steps_) {
      map = std::max(map, step.out_size);
      scratch = std::max(scratch, step.scratch_size);
    }
    for (std::vector<float>& buffer : maps_) buffer.resize(map);
    scratch_.resize(scratch);
  }
  const float* x = images.floats();
  int turn = 0;
  for (const Step& step : steps_) {
    float* out = maps_[turn].data();
    step.run(x, out, scratch_.data());
    x = out;
    turn = 1 - turn;
  }
  Array logits({batch_, classes_});
  std::copy_n(x, logits.count(), logits.floats());
  return logits;
}

}  // namespace fedsmooth
