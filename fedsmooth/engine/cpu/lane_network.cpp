#include "fedsmooth/engine/cpu/lane_network.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "fedsmooth/engine/cpu/lane_layers.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

// A pool, or a convolution with the ReLU that follows it, and what it keeps of the last pass.
struct Stage {
  Layer layer;
  LaneConvolution conv;
  size_t weight = 0;  // its first tensor
  Tensor kernel, bias, y;
  uint32_t version = 0;  // of the kernel
  LaneScratch scratch;

  bool is_pool() const { return layer.kind == Kind::kMaxPool; }
};

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

// [K, C, k, k], or [K, features] of a linear layer, as [k, k, C, K].
Tensor as_kernel(const Tensor& weight, const LaneConvolution& conv) {
  return weight.reshape({conv.out[0], conv.in[0], conv.kernel, conv.kernel}).permute({2, 3, 1, 0});
}

Tensor as_weight(const Tensor& kernel, const Layer& layer) {
  const Tensor weight = kernel.permute({3, 2, 0, 1});
  return layer.kind == Kind::kLinear ? weight.flatten(1) : weight;
}

Tensor empty_map(const Shape& shape, const Lanes& lanes) {
  return at::empty({shape[1], shape[2], shape[0], lanes.count});
}

}  // namespace

struct LaneNetwork::State {
  Network network;
  std::vector<Stage> stages;
  Lanes lanes;
  Tensor input;  // normalised
  int64_t passes = 0;

  const Tensor& input_of(size_t stage) const { return stage == 0 ? input : stages[stage - 1].y; }
  Tensor sd() const;
  void load_images(const Tensor& images);
  bool load_weights(Stage& stage, const Weights& weights) const;
};

Tensor LaneNetwork::State::sd() const {
  const Layer& normalize = network.layers[0];
  return at::tensor(normalize.sd, at::kFloat).view({1, network.input[0], 1, 1});
}

void LaneNetwork::State::load_images(const Tensor& images) {
  const Tensor mean = at::tensor(network.layers[0].mean, at::kFloat).view({1, -1, 1, 1});
  lanes = {images.size(0), (images.size(0) + 15) / 16 * 16};
  const Tensor x = (images - mean) / sd();
  const int64_t missing = lanes.count - lanes.batch;
  input = at::constant_pad_nd(x, {0, 0, 0, 0, 0, 0, 0, missing}).permute({2, 3, 1, 0}).contiguous();
}

// Returns whether the kernel is another one than in the last pass.
bool LaneNetwork::State::load_weights(Stage& stage, const Weights& weights) const {
  const Tensor& weight = weights[stage.weight];
  const Tensor kernel = as_kernel(weight, stage.conv).contiguous();
  const bool fresh = !stage.kernel.defined() || stage.version != weight._version() ||
                     stage.kernel.data_ptr() != kernel.data_ptr();
  stage.kernel = kernel;
  stage.version = weight._version();
  stage.bias = stage.layer.bias ? weights[stage.weight + 1] : at::zeros({stage.conv.out[0]});
  return fresh;
}

bool LaneNetwork::supports(const Network& network) {
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

LaneNetwork::LaneNetwork(const Network& network)
    : state_(new State{network, make_stages(network)}) {
  TORCH_CHECK(supports(network), "LaneNetwork: network ", network.name, " has other layers");
}

LaneNetwork::~LaneNetwork() = default;

int64_t LaneNetwork::passes() const { return state_->passes; }

Tensor LaneNetwork::forward(const Weights& weights, const Tensor& images) {
  State& s = *state_;
  ++s.passes;
  s.load_images(images);
  for (size_t i = 0; i < s.stages.size(); ++i) {
    Stage& stage = s.stages[i];
    const auto* x = s.input_of(i).data_ptr<float>();
    stage.y = empty_map(stage.conv.out, s.lanes);
    auto* y = stage.y.data_ptr<float>();
    if (stage.is_pool()) {
      pool(stage.layer, stage.conv.in, stage.conv.out, s.lanes, x, y);
      continue;
    }
    const bool fresh = s.load_weights(stage, weights);
    convolve(stage.conv, s.lanes, stage.kernel.data_ptr<float>(), stage.bias.data_ptr<float>(), x,
             y, fresh, stage.scratch);
  }
  return s.stages.back().y[0][0].narrow(1, 0, s.lanes.batch).t().contiguous();
}

LaneNetwork::Gradients LaneNetwork::backward(const Tensor& gradient, bool of_images,
                                             bool of_weights) {
  State& s = *state_;
  Gradients result;
  if (of_weights) result.weights.resize(parameters(s.network).size());
  Tensor dy = at::constant_pad_nd(gradient.t(), {0, s.lanes.count - s.lanes.batch}).contiguous();
  for (size_t i = s.stages.size(); i-- > 0;) {
    Stage& stage = s.stages[i];
    const LaneConvolution& conv = stage.conv;
    const auto* x = s.input_of(i).data_ptr<float>();
    const auto* y = stage.y.data_ptr<float>();
    auto* from = dy.data_ptr<float>();
    if (!stage.is_pool() && conv.relu) relu_gradient(y, stage.y.numel(), from);
    if (!stage.is_pool() && of_weights) {
      const KernelGradient found = kernel_gradient(conv, s.lanes, x, from, stage.scratch);
      result.weights[stage.weight] = as_weight(found.kernel, stage.layer);
      if (conv.bias) result.weights[stage.weight + 1] = found.bias;
    }
    if (i == 0 && !of_images) break;
    Tensor dx = empty_map(conv.in, s.lanes);
    if (stage.is_pool()) {
      pool_gradient(stage.layer, conv.in, conv.out, s.lanes, x, y, from, dx.data_ptr<float>());
    } else {
      convolve_gradient(conv, s.lanes, stage.kernel.data_ptr<float>(), from, dx.data_ptr<float>(),
                        stage.scratch);
    }
    dy = dx;
  }
  if (of_images) {
    result.images = dy.narrow(3, 0, s.lanes.batch).permute({3, 2, 0, 1}).contiguous() / s.sd();
  }
  return result;
}

namespace {

struct LanePass : public torch::autograd::Function<LanePass> {
  static Tensor forward(torch::autograd::AutogradContext* context, LaneNetwork* network,
                        const Tensor& images, at::TensorList weights) {
    context->saved_data["network"] = reinterpret_cast<int64_t>(network);
    context->saved_data["of_images"] = images.requires_grad();
    context->saved_data["weights"] = static_cast<int64_t>(weights.size());
    context->saved_data["of_weights"] = weights[0].requires_grad();
    const Tensor logits = network->forward(weights.vec(), images);
    context->saved_data["pass"] = network->passes();
    return logits;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    auto* network = reinterpret_cast<LaneNetwork*>(context->saved_data["network"].toInt());
    TORCH_CHECK(context->saved_data["pass"].toInt() == network->passes(),
                "LaneNetwork: gradients of an earlier pass");
    const LaneNetwork::Gradients found =
        network->backward(gradients[0], context->saved_data["of_images"].toBool(),
                          context->saved_data["of_weights"].toBool());
    torch::autograd::variable_list result(2 + context->saved_data["weights"].toInt());
    result[1] = found.images;
    std::copy(found.weights.begin(), found.weights.end(), result.begin() + 2);
    return result;
  }
};

}  // namespace

Weights lay_out_for_lanes(const Network& network, const Weights& weights) {
  Weights result = weights;
  for (const Stage& stage : make_stages(network)) {
    if (stage.is_pool()) continue;
    Tensor& weight = result[stage.weight];
    weight = as_weight(as_kernel(weight, stage.conv).contiguous(), stage.layer);
  }
  return result;
}

Forward differentiable(std::shared_ptr<LaneNetwork> network) {
  return [network](const Weights& weights, const Tensor& images, const std::optional<Stream>&) {
    return LanePass::apply(network.get(), images, at::TensorList(weights));
  };
}

}  // namespace fedsmooth
