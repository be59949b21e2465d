#include "fedsmooth/engine/cpu/lane_network.h"

#include <algorithm>

#include "fedsmooth/base/check.h"
#include "fedsmooth/engine/cpu/lane_layers.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

// A pool, or a convolution with the ReLU that follows it; its weights, and what it keeps of the
// last pass.
struct Stage {
  Layer layer;
  LaneConvolution conv;
  size_t weight = 0;                // its first tensor
  std::vector<float> kernel, bias;  // [k, k, C, K], [K]
  std::vector<float> y;             // [H, W, C, lanes]
  LaneScratch scratch;
  KernelGradient gradient;

  bool is_pool() const { return layer.kind == Kind::kMaxPool; }
};

int64_t size_of(const Shape& shape) { return shape[0] * shape[1] * shape[2]; }

std::vector<Stage> make_stages(const Network& network) {
  std::vector<Stage> stages;
  Shape in = network.input;
  size_t weight = 0;
  for (size_t i = 1; i < network.layers.size(); ++i) {
    const Layer& layer = network.layers[i];
    const Shape out = shape_after(layer, in);
    Stage stage{layer, {in, out, layer.kernel, layer.stride, layer.padding, layer.bias}, weight};
    if (layer.kind == Kind::kLinear) {
      stage.conv.kernel = in[1];
      stage.conv.stride = 1;
    }
    if (!stage.is_pool()) {
      weight += layer.bias ? 2 : 1;
      stage.conv.relu = i + 1 < network.layers.size() && network.layers[i + 1].kind == Kind::kRelu;
      if (stage.conv.relu) ++i;
    }
    stages.push_back(std::move(stage));
    in = out;
  }
  return stages;
}

// From [K, C, k, k], as PyTorch has it (a linear layer's [K, features] is the same), to [k, k, C,
// K] or back: calls move(there, here) for the offsets of every value.
template <typename Move>
void for_each_weight(const LaneConvolution& conv, const Move& move) {
  const int64_t outputs = conv.out[0], channels = conv.in[0], taps = conv.kernel * conv.kernel;
  for (int64_t k = 0; k < outputs; ++k) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t t = 0; t < taps; ++t) {
        move((k * channels + c) * taps + t, (t * channels + c) * outputs + k);
      }
    }
  }
}

class LanePasses : public Passes {
 public:
  explicit LanePasses(const Network& network)
      : network_(network), parameters_(parameters(network)), stages_(make_stages(network)) {
    check(lanes_support(network), "lane_passes: network {} has other layers", network.name);
  }

  void load(const Weights& weights) override {
    check(weights.size() == parameters_.size(), "lane_passes: {} tensors, the network has {}",
          weights.size(), parameters_.size());
    for (Stage& stage : stages_) {
      if (stage.is_pool()) continue;
      const Array& weight = weights[stage.weight];
      stage.kernel.resize(weight.count());
      for_each_weight(stage.conv, [&](int64_t there, int64_t here) {
        stage.kernel[here] = weight.floats()[there];
      });
      stage.bias.assign(stage.conv.out[0], 0.0f);
      if (stage.layer.bias) {
        const Array& bias = weights[stage.weight + 1];
        std::copy_n(bias.floats(), bias.count(), stage.bias.begin());
      }
    }
    moved_ = true;
  }

  Weights weights() const override {
    Weights found(parameters_.size());
    for (const Stage& stage : stages_) {
      if (stage.is_pool()) continue;
      Array weight(parameters_[stage.weight].shape);
      float* to = weight.floats();
      for_each_weight(stage.conv,
                      [&](int64_t there, int64_t here) { to[there] = stage.kernel[here]; });
      found[stage.weight] = weight;
      if (stage.layer.bias) found[stage.weight + 1] = Array::of({stage.conv.out[0]}, stage.bias);
    }
    return found;
  }

  // No layer that it knows is another one in training.
  Array forward(const Array& images, const std::optional<Stream>&) override {
    load_images(images);
    for (size_t i = 0; i < stages_.size(); ++i) {
      Stage& stage = stages_[i];
      stage.y.resize(size_of(stage.conv.out) * lanes_.count);
      if (stage.is_pool()) {
        pool(stage.layer, stage.conv.in, stage.conv.out, lanes_, input_of(i), stage.y.data());
      } else {
        convolve(stage.conv, lanes_, stage.kernel.data(), stage.bias.data(), input_of(i),
                 stage.y.data(), moved_, stage.scratch);
      }
    }
    moved_ = false;
    const int64_t classes = stages_.back().conv.out[0];
    Array logits({lanes_.batch, classes});
    for (int64_t b = 0; b < lanes_.batch; ++b) {
      for (int64_t k = 0; k < classes; ++k) {
        logits.floats()[b * classes + k] = stages_.back().y[k * lanes_.count + b];
      }
    }
    return logits;
  }

  Array backward_to_images(const Array& gradient) override {
    const std::vector<float> dx = backward(gradient, /*of_images=*/true, /*of_weights=*/false);
    const auto [channels, height, width] = network_.input;
    const int64_t area = height * width;
    Array images({lanes_.batch, channels, height, width});
    for (int64_t c = 0; c < channels; ++c) {
      const auto sd = static_cast<float>(network_.layers[0].sd[c]);
      for (int64_t p = 0; p < area; ++p) {
        const float* from = dx.data() + (p * channels + c) * lanes_.count;
        float* to = images.floats() + c * area + p;
        for (int64_t b = 0; b < lanes_.batch; ++b) to[b * channels * area] = from[b] / sd;
      }
    }
    return images;
  }

  std::vector<WeightGradient> backward_to_weights(const Array& gradient) override {
    backward(gradient, /*of_images=*/false, /*of_weights=*/true);
    std::vector<WeightGradient> found;
    for (Stage& stage : stages_) {
      if (stage.is_pool()) continue;
      found.push_back(
          {stage.kernel.data(), stage.gradient.kernel.data(), std::ssize(stage.kernel)});
      if (!stage.layer.bias) continue;
      found.push_back({stage.bias.data(), stage.gradient.bias.data(), std::ssize(stage.bias)});
    }
    moved_ = true;
    return found;
  }

 private:
  const float* input_of(size_t stage) const {
    return stage == 0 ? input_.data() : stages_[stage - 1].y.data();
  }

  // Normalised, [H, W, C, lanes].
  void load_images(const Array& images) {
    const auto [channels, height, width] = network_.input;
    const Layer& normalize = network_.layers[0];
    const int64_t area = height * width;
    lanes_ = {images.size(0), (images.size(0) + 15) / 16 * 16};
    input_.assign(size_of(network_.input) * lanes_.count, 0.0f);
    for (int64_t c = 0; c < channels; ++c) {
      const auto mean = static_cast<float>(normalize.mean[c]);
      const auto sd = static_cast<float>(normalize.sd[c]);
      for (int64_t p = 0; p < area; ++p) {
        const float* from = images.floats() + c * area + p;
        float* to = input_.data() + (p * channels + c) * lanes_.count;
        for (int64_t b = 0; b < lanes_.batch; ++b) to[b] = (from[b * channels * area] - mean) / sd;
      }
    }
  }

  // The gradient of the normalised images, if asked for; those of the weights go to the stages.
  std::vector<float> backward(const Array& gradient, bool of_images, bool of_weights) {
    const int64_t classes = stages_.back().conv.out[0];
    check(lanes_.batch > 0 && gradient.sizes() == Sizes{lanes_.batch, classes},
          "lane_passes: gradient [{}], the last pass gave logits [{}, {}]",
          fmt::join(gradient.sizes(), ", "), lanes_.batch, classes);
    std::vector<float> dy(classes * lanes_.count, 0.0f);
    for (int64_t b = 0; b < lanes_.batch; ++b) {
      for (int64_t k = 0; k < classes; ++k) {
        dy[k * lanes_.count + b] = gradient.floats()[b * classes + k];
      }
    }
    for (size_t i = stages_.size(); i-- > 0;) {
      Stage& stage = stages_[i];
      const LaneConvolution& conv = stage.conv;
      if (!stage.is_pool() && conv.relu) {
        relu_gradient(stage.y.data(), std::ssize(stage.y), dy.data());
      }
      if (!stage.is_pool() && of_weights) {
        stage.gradient = kernel_gradient(conv, lanes_, input_of(i), dy.data(), stage.scratch);
      }
      if (i == 0 && !of_images) return {};
      std::vector<float> dx(size_of(conv.in) * lanes_.count);
      if (stage.is_pool()) {
        pool_gradient(stage.layer, conv.in, conv.out, lanes_, input_of(i), stage.y.data(),
                      dy.data(), dx.data());
      } else {
        convolve_gradient(conv, lanes_, stage.kernel.data(), dy.data(), dx.data(), stage.scratch);
      }
      dy = std::move(dx);
    }
    return dy;
  }

  Network network_;
  std::vector<Parameter> parameters_;
  std::vector<Stage> stages_;
  Lanes lanes_;
  std::vector<float> input_;
  bool moved_ = true;  // whether the weights are others than in the last pass
};

}  // namespace

bool lanes_support(const Network& network) {
  const auto& layers = network.layers;
  if (layers.size() < 2 || layers[0].kind != Kind::kNormalize) return false;
  Shape shape = network.input;
  for (size_t i = 1; i < layers.size(); ++i) {
    const Kind kind = layers[i].kind, before = layers[i - 1].kind;
    const bool product = kind == Kind::kConv || (kind == Kind::kLinear && shape[1] == shape[2]);
    const bool relu = kind == Kind::kRelu && (before == Kind::kConv || before == Kind::kLinear);
    if (!product && !relu && kind != Kind::kMaxPool) return false;
    shape = shape_after(layers[i], shape);
  }
  return true;
}

std::unique_ptr<Passes> lane_passes(const Network& network) {
  return std::make_unique<LanePasses>(network);
}

}  // namespace fedsmooth
