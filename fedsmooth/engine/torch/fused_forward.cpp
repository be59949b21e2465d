#include "fedsmooth/engine/torch/fused_forward.h"

#include <c10/core/GradMode.h>

#include "fedsmooth/engine/cuda/device_memory.h"
#include "fedsmooth/engine/torch/finish_map.h"

namespace fedsmooth {
namespace {

using at::Tensor;

using Kind = Layer::Kind;

// LibTorch's default stream, on which its convolutions are.
constexpr cudaStream_t kStream = nullptr;

// values + bias + other, where the latter two are defined.
struct Map {
  Tensor values, bias, other;
  bool ours = false;  // nobody else reads `values`
};

bool fits_kernel(const Tensor& map) {
  return map.is_cuda() && map.scalar_type() == at::kBFloat16 && map.dim() == 4 &&
         map.size(1) % 8 == 0 && map.numel() <= (int64_t{1} << 34) &&
         map.is_contiguous(at::MemoryFormat::ChannelsLast);
}

void* data_of(const Tensor& tensor) { return tensor.defined() ? tensor.data_ptr() : nullptr; }

Tensor finish(const Map& h, bool relu = false) {
  const bool plain = !relu && !h.bias.defined() && !h.other.defined();
  if (plain) return h.values;
  Tensor out = h.ours ? h.values : h.values.clone();
  if (fits_kernel(out) && (!h.other.defined() || fits_kernel(h.other))) {
    const auto channels = static_cast<int>(out.size(1));
    check_cuda(
        finish_map({data_of(out), data_of(h.bias), data_of(h.other), out.numel(), channels, relu},
                   kStream),
        "finish_map");
    return out;
  }
  if (h.bias.defined()) out.add_(h.bias.view({-1, 1, 1}));
  if (h.other.defined()) out.add_(h.other);
  return relu ? out.relu_() : out;
}

// Takes the weights in the order in which layers use them.
class FusedPass {
 public:
  explicit FusedPass(const Tensors& weights) : weights_(weights) {}

  Map run(const std::vector<Layer>& layers, const Tensor& input) {
    Map h{input};
    for (const Layer& layer : layers) {
      if (layer.kind == Kind::kRelu) {
        h = {finish(h, /*relu=*/true), {}, {}, true};
      } else if (layer.kind == Kind::kConv) {
        h = convolve(layer, finish(h));
      } else if (layer.kind == Kind::kResidual) {
        h = branch(layer, finish(h));
      } else {
        h = {apply_alone(layer, finish(h))};
      }
    }
    return h;
  }

  bool used_all() const { return next_ == weights_.size(); }

 private:
  const Tensor& take() {
    TORCH_CHECK(next_ < weights_.size(), "fused_forward: the network has more than ",
                weights_.size(), " tensors");
    return weights_[next_++];
  }

  // The bias is left to the pass that follows.
  Map convolve(const Layer& layer, const Tensor& x) {
    const Tensor& weight = take();
    const Tensor bias = layer.bias ? take() : Tensor();
    return {at::conv2d(x, weight, {}, layer.stride, layer.padding), bias, {}, true};
  }

  Map branch(const Layer& layer, const Tensor& x) {
    Map body = run(layer.body, x);
    const Tensor shortcut = finish(run(layer.shortcut, x));
    if (body.other.defined()) body = {finish(body), {}, {}, true};
    body.other = shortcut;
    return body;
  }

  Tensor apply_alone(const Layer& layer, const Tensor& x) {
    const Shape in = {x.size(1), x.size(2), x.size(3)}, out = shape_after(layer, in);
    const Network alone = {"layer", in, {layer}};
    Tensors weights;
    for (size_t i = parameters(alone).size(); i > 0; --i) weights.push_back(take());
    return torch_forward(alone, weights, x)
        .view({x.size(0), out[0], out[1], out[2]})
        .contiguous(x.suggest_memory_format());
  }

  const Tensors& weights_;
  size_t next_ = 0;
};

}  // namespace

at::Tensor fused_forward(const Network& network, const Tensors& weights, const at::Tensor& images) {
  c10::NoGradGuard no_grad;
  FusedPass pass(weights);
  const at::Tensor logits = finish(pass.run(network.layers, images));
  TORCH_CHECK(pass.used_all(), "fused_forward: more tensors than network ", network.name, " has");
  return logits.flatten(1);
}

}  // namespace fedsmooth
