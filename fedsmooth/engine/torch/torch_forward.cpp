#include "fedsmooth/engine/torch/torch_forward.h"

#include <c10/core/GradMode.h>

#include "fedsmooth/model/stages.h"

namespace fedsmooth {
namespace {

using at::Tensor;

using Kind = Layer::Kind;

// A forward pass, which consumes the weights in the order in which layers use them.
class Pass {
 public:
  // Without a stream the pass is an evaluation.
  Pass(const Tensors& weights, std::optional<Stream> training)
      : weights_(weights), training_(training) {}

  Tensor run(const std::vector<Layer>& layers, Tensor h) {
    const Tensor input = h;
    for (const Layer& layer : layers) h = apply(layer, h, may_overwrite(h, input));
    return h;
  }

  bool used_all() const { return next_ == weights_.size(); }

 private:
  const Tensor& take() {
    TORCH_CHECK(next_ < weights_.size(), "torch_forward: the network has more than ",
                weights_.size(), " tensors");
    return weights_[next_++];
  }

  // Whether h may be overwritten: not if it is `input`, which others may still read, nor if
  // autograd may have saved it. Layers return a new tensor or `input`.
  static bool may_overwrite(const Tensor& h, const Tensor& input) {
    return !c10::GradMode::is_enabled() && !h.is_same(input);
  }

  // Returns 1 / (1 - rate) where a value is kept, else 0.
  Tensor keep_mask(const Tensor& h, double rate) {
    Tensor uniform = at::empty(h.sizes(), at::kFloat);
    fill_uniform(*training_, dropped_++, uniform.data_ptr<float>(), uniform.numel());
    return uniform.ge(rate).to(h.scalar_type()).div(1 - rate);
  }

  Tensor apply(const Layer& layer, const Tensor& h, bool overwrite) {
    switch (layer.kind) {
      case Kind::kNormalize: {
        const auto channels = static_cast<int64_t>(layer.mean.size());
        const Tensor mean = at::tensor(layer.mean, at::kDouble).view({channels, 1, 1}).to(h);
        const Tensor sd = at::tensor(layer.sd, at::kDouble).view({channels, 1, 1}).to(h);
        return (h - mean) / sd;
      }
      case Kind::kConv: {
        const Tensor& weight = take();
        const Tensor bias = layer.bias ? take() : Tensor();
        return at::conv2d(h, weight, bias, layer.stride, layer.padding);
      }
      case Kind::kBatchNorm: {
        const Tensor &weight = take(), &bias = take(), &mean = take(), &variance = take();
        return at::batch_norm(h, weight, bias, mean, variance, training_.has_value(),
                              /*momentum=*/0.1, kBatchNormEpsilon, /*cudnn_enabled=*/false);
      }
      case Kind::kGroupNorm: {
        const Tensor &weight = take(), &bias = take();
        return at::group_norm(h, layer.groups, weight, bias, kBatchNormEpsilon,
                              /*cudnn_enabled=*/false);
      }
      case Kind::kRelu:
        return overwrite ? h.relu_() : at::relu(h);
      case Kind::kLeakyRelu:
        return at::leaky_relu(h, layer.slope);
      case Kind::kSilu:
        return at::silu(h);
      case Kind::kGelu:
        return at::gelu(h);
      case Kind::kMaxPool:
        return at::max_pool2d(h, layer.kernel, layer.stride);
      case Kind::kAvgPool:
        return h.mean({2, 3}, /*keepdim=*/true);
      case Kind::kSubsample: {
        const Tensor kept =
            h.slice(2, 0, h.size(2), layer.stride).slice(3, 0, h.size(3), layer.stride);
        return at::constant_pad_nd(kept, {0, 0, 0, 0, 0, layer.outputs - h.size(1)});
      }
      case Kind::kDropout:
        return training_ ? h * keep_mask(h, layer.drop_rate) : h;
      case Kind::kLinear: {
        const Tensor& weight = take();
        const Tensor bias = layer.bias ? take() : Tensor();
        return at::linear(h.flatten(1), weight, bias).unsqueeze(2).unsqueeze(3);  // [B, K, 1, 1]
      }
      case Kind::kResidual: {
        const Tensor body = run(layer.body, h);
        const Tensor shortcut = run(layer.shortcut, h);
        return may_overwrite(body, h) ? body.add_(shortcut) : body + shortcut;
      }
    }
    TORCH_CHECK(false, "torch_forward: unknown kind of layer");
  }

  const Tensors& weights_;
  std::optional<Stream> training_;
  size_t next_ = 0;
  uint32_t dropped_ = 0;  // number of dropout layers so far; each draws its own sample
};

Tensor run(const Network& network, const Tensors& weights, const Tensor& images,
           std::optional<Stream> training) {
  const std::string why = parts_refusal(stages_of(network), kTorchParts);
  TORCH_CHECK(why.empty(), "torch_forward: network ", network.name, ": ", why);
  Pass pass(weights, training);
  const Tensor logits = pass.run(network.layers, images);
  TORCH_CHECK(pass.used_all(), "torch_forward: more tensors than network ", network.name, " has");
  return logits.flatten(1);
}

}  // namespace

at::Tensor torch_forward(const Network& network, const Tensors& weights, const at::Tensor& images,
                         const std::optional<Stream>& training) {
  return run(network, weights, images, training);
}

}  // namespace fedsmooth
