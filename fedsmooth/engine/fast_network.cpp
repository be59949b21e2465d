#include "fedsmooth/engine/fast_network.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "fedsmooth/base/vector_clones.h"
#include "fedsmooth/engine/toeplitz.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;
using Step = FastNetwork::Step;

// Rows of a matrix product that are gathered at a time: enough to keep the product efficient, few
// enough that the patches stay in the cache.
constexpr int64_t kPatchRows = 1024;

int64_t size_of(const Shape& shape) { return shape[0] * shape[1] * shape[2]; }

Tensor view(const float* data, int64_t rows, int64_t columns) {
  return at::from_blob(const_cast<float*>(data), {rows, columns}, at::kFloat);
}

void multiply(const float* a, const Tensor& b, int64_t rows, float* out) {
  Tensor product = view(out, rows, b.size(1));
  at::mm_out(product, view(a, rows, b.size(0)), b);
}

FEDSMOOTH_VECTOR_CLONES
void add_bias(float* x, int64_t rows, int64_t channels, const float* bias, bool relu) {
  for (int64_t i = 0; i < rows; ++i, x += channels) {
    for (int64_t c = 0; c < channels; ++c) x[c] += bias[c];
    if (relu) {
      // Written so that NaN stays NaN: a broken evaluation must not turn into a vote.
      for (int64_t c = 0; c < channels; ++c) x[c] = x[c] < 0.0f ? 0.0f : x[c];
    }
  }
}

FEDSMOOTH_VECTOR_CLONES
void max_into(float* out, const float* x, int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) out[c] = out[c] >= x[c] ? out[c] : x[c];
}

Tensor bias_of(const Layer& layer, Weights::const_iterator& next) {
  return layer.bias ? (*next++).contiguous() : at::zeros({layer.outputs});
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

// Images per product of at most kPatchRows rows; divides the batch so that all products are alike.
int64_t images_at_a_time(int64_t batch, int64_t rows_per_image) {
  int64_t images = std::max<int64_t>(1, std::min(batch, kPatchRows / rows_per_image));
  while (batch % images != 0) --images;
  return images;
}

Step window_step(const Layer& layer, const Shape& in, const Shape& out, int64_t batch, bool relu,
                 Weights::const_iterator& next) {
  const Tensor matrix =
      next->permute({2, 3, 1, 0}).reshape({-1, layer.outputs}).contiguous();  // [k k C, K]
  ++next;
  const Tensor bias = bias_of(layer, next);
  const int64_t height = in[1] + 2 * layer.padding, width = in[2] + 2 * layer.padding;
  const int64_t padded_size = height * width * in[0];
  const int64_t positions = out[1] * out[2], patch = matrix.size(0);
  const int64_t images = images_at_a_time(batch, positions);
  const auto run = [=](const float* x, float* y, float* scratch) {
    float *padded = scratch, *patches = scratch + padded_size;
    std::fill_n(padded, padded_size, 0.0f);  // the frame stays zero from image to image
    for (int64_t b = 0; b < batch; b += images) {
      for (int64_t i = 0; i < images; ++i) {
        pad_map(x + (b + i) * size_of(in), in, layer.padding, padded);
        gather_patches(padded, width, in[0], layer, out, patches + i * positions * patch);
      }
      float* result = y + b * size_of(out);
      multiply(patches, matrix, images * positions, result);
      add_bias(result, images * positions, layer.outputs, bias.data_ptr<float>(), relu);
    }
  };
  return {run, batch * size_of(out), padded_size + images * positions * patch};
}

Step toeplitz_step(const Layer& layer, const Shape& in, int64_t batch, bool relu,
                   Weights::const_iterator& next) {
  const ToeplitzAxis axis(in[1]);
  const Tensor weights = toeplitz_weights(axis, *next++);  // [P, C, K]
  const Tensor bias = bias_of(layer, next);
  const int64_t products = weights.size(0), channels = in[0], outputs = layer.outputs;
  const std::vector<Tensor> matrices = weights.unbind(0);
  const auto run = [=](const float* x, float* y, float* scratch) {
    float *sums = scratch, *results = scratch + products * batch * channels;
    toeplitz_inputs(axis, batch, channels, x, sums);
    for (int64_t p = 0; p < products; ++p) {
      multiply(sums + p * batch * channels, matrices[p], batch, results + p * batch * outputs);
    }
    toeplitz_outputs(axis, batch, outputs, results, bias.data_ptr<float>(), relu, y);
  };
  return {run, batch * in[1] * in[2] * outputs, products * batch * (channels + outputs)};
}

Step linear_step(const Layer& layer, const Shape& in, int64_t batch, bool relu,
                 Weights::const_iterator& next) {
  // PyTorch flattens [C, H, W]; the maps here are [H, W, C].
  const Tensor matrix = next->view({layer.outputs, in[0], in[1], in[2]})
                            .permute({2, 3, 1, 0})
                            .reshape({-1, layer.outputs})
                            .contiguous();
  ++next;
  const Tensor bias = bias_of(layer, next);
  const auto run = [=](const float* x, float* y, float*) {
    multiply(x, matrix, batch, y);
    add_bias(y, batch, layer.outputs, bias.data_ptr<float>(), relu);
  };
  return {run, batch * layer.outputs};
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

bool keeps_size(const Layer& layer) {
  return layer.stride == 1 && layer.kernel % 2 == 1 && layer.padding == layer.kernel / 2;
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
  TORCH_CHECK(supports(network), "FastNetwork: network ", network.name, " has other layers");
  auto next = weights.begin();
  Shape shape = network.input;
  for (size_t i = 0; i < network.layers.size(); ++i) {
    const Layer& layer = network.layers[i];
    const Shape out = shape_after(layer, shape);
    // A ReLU right after a product is applied with the bias.
    const bool product = layer.kind == Kind::kConv || layer.kind == Kind::kLinear;
    const bool relu =
        product && i + 1 < network.layers.size() && network.layers[i + 1].kind == Kind::kRelu;
    if (layer.kind == Kind::kNormalize) {
      steps_.push_back(normalize_step(layer, shape, batch));
    } else if (layer.kind == Kind::kLinear) {
      steps_.push_back(linear_step(layer, shape, batch, relu, next));
    } else if (layer.kind == Kind::kMaxPool) {
      steps_.push_back(max_pool_step(layer, shape, out, batch));
    } else if (layer.kind == Kind::kRelu) {
      steps_.push_back(relu_step(shape, batch));
    } else if (layer.kind == Kind::kConv) {
      const bool toeplitz =
          keeps_size(layer) && shape[1] == shape[2] && toeplitz_pays(shape[1], layer.kernel);
      steps_.push_back(toeplitz ? toeplitz_step(layer, shape, batch, relu, next)
                                : window_step(layer, shape, out, batch, relu, next));
    }
    shape = out;
    i += relu ? 1 : 0;
  }
}

Tensor FastNetwork::operator()(const Tensor& images) {
  TORCH_CHECK(images.is_contiguous() && images.size(0) == batch_, "FastNetwork: images ",
              images.sizes(), ", expected a batch of ", batch_);
  if (!scratch_.defined()) {
    int64_t map = 0, scratch = 0;
    for (const Step& step : steps_) {
      map = std::max(map, step.out_size);
      scratch = std::max(scratch, step.scratch_size);
    }
    for (Tensor& buffer : maps_) buffer = at::empty({map});
    scratch_ = at::empty({scratch});
  }
  const float* x = images.data_ptr<float>();
  int turn = 0;
  for (const Step& step : steps_) {
    float* out = maps_[turn].data_ptr<float>();
    step.run(x, out, scratch_.data_ptr<float>());
    x = out;
    turn = 1 - turn;
  }
  return view(x, batch_, classes_);
}

}  // namespace fedsmooth
