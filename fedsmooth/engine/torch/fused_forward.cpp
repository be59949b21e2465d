#include "fedsmooth/engine/torch/fused_forward.h"

#include <c10/core/GradMode.h>

#include "fedsmooth/engine/cuda/device_memory.h"
#include "fedsmooth/engine/torch/finish_map.h"
#include "fedsmooth/model/stages.h"

namespace fedsmooth {
namespace {

using at::Tensor;

using Kind = Layer::Kind;

// LibTorch's default stream, on which it launches its convolutions.
constexpr cudaStream_t kStream = nullptr;

// The sum values + bias + other, not yet computed. bias and other may be undefined.
struct Map {
  Tensor values, bias, other;
  bool ours = false;  // `values` may be overwritten, as nothing else reads it
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

class FusedPass {
 public:
  FusedPass(const Tensors& weights, const Tensor& images) : weights_(weights), images_(images) {}

  // Runs one stage. finish() adds a convolution's bias, together with the sum and ReLU.
  void run(const Stage& stage) {
    Map h{output(stage.input)};
    if (stage.is_op(Kind::kConv)) {
      h = convolve(stage, h.values);
    } else if (stage.op) {
      h = {apply_alone(*stage.op, stage.op_tensor, h.values)};
    }
    if (stage.norm) h = {apply_alone(*stage.norm, stage.norm_tensor, finish(h))};
    if (stage.saved) h.other = output(*stage.saved);
    const bool relu = stage.is_activation(Kind::kRelu);
    Tensor y = finish(h, relu);
    if (stage.activation && !relu) y = apply_alone(*stage.activation, 0, y);
    if (stage.pool) y = apply_alone(*stage.pool, 0, y);
    outputs_.push_back(y);
  }

  const Tensor& output(int stage) const {
    return stage == Stage::kImages ? images_ : outputs_[stage];
  }

 private:
  Map convolve(const Stage& stage, const Tensor& x) {
    const Tensor bias = stage.op->bias ? weights_[stage.op_tensor + 1] : Tensor();
    const Tensor y =
        at::conv2d(x, weights_[stage.op_tensor], {}, stage.op->stride, stage.op->padding);
    return {y, bias, {}, true};
  }

  Tensor apply_alone(const Layer& layer, size_t tensor, const Tensor& x) {
    const Shape in = {x.size(1), x.size(2), x.size(3)}, out = shape_after(layer, in);
    const auto first = weights_.begin() + static_cast<int64_t>(tensor);
    const Tensors weights(first, first + static_cast<int64_t>(count_tensors(layer)));
    return torch_forward({"layer", in, {layer}}, weights, x)
        .view({x.size(0), out[0], out[1], out[2]})
        .contiguous(x.suggest_memory_format());
  }

  const Tensors& weights_;
  const Tensor& images_;
  Tensors outputs_;  // of the stages so far
};

}  // namespace

at::Tensor fused_forward(const Network& network, const Tensors& weights, const at::Tensor& images) {
  c10::NoGradGuard no_grad;
  const size_t tensors = parameters(network).size();
  TORCH_CHECK(weights.size() == tensors, "fused_forward: ", weights.size(), " tensors, network ",
              network.name, " has ", tensors);
  const std::vector<Stage> stages = stages_of(network);
  const std::string why = parts_refusal(stages, kTorchParts);
  TORCH_CHECK(why.empty(), "fused_forward: network ", network.name, ": ", why);
  FusedPass pass(weights, images);
  for (const Stage& stage : stages) pass.run(stage);
  return pass.output(static_cast<int>(stages.size()) - 1).flatten(1);
}

}  // namespace fedsmooth
