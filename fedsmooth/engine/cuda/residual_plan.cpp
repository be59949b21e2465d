#include "fedsmooth/engine/cuda/residual_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fedsmooth/base/check.h"
#include "fedsmooth/model/network_json.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

struct Refusal {
  std::string why;
};

// Layers of one list, taken in order.
class LayerWalk {
 public:
  LayerWalk(const std::vector<Layer>& layers, std::string path)
      : layers_(layers), path_(std::move(path)) {}

  bool is_next(Kind kind) const { return next_ < layers_.size() && layers_[next_].kind == kind; }

  const Layer& take(Kind kind, const std::string& expected) {
    if (!is_next(kind)) refuse(expected);
    return layers_[next_++];
  }

  const Layer& take_conv(int kernel, int stride, int outputs) {
    const std::string expected = fmt::format(
        "a {0}x{0} convolution with stride {1} to {2} channels", kernel, stride, outputs);
    const Layer& conv = take(Kind::kConv, expected);
    if (conv.kernel != kernel || conv.stride != stride || conv.padding != kernel / 2 ||
        conv.outputs != outputs) {
      --next_;
      refuse(expected);
    }
    return conv;
  }

  void end(const std::string& expected) const {
    if (next_ < layers_.size()) refuse(expected);
  }

  const Layer& peek() const { return layers_.at(next_); }
  std::string path() const { return fmt::format("{}{}", path_, next_); }

  [[noreturn]] void refuse(const std::string& expected) const {
    if (next_ == layers_.size()) throw Refusal{fmt::format("it ends where {} has to be", expected)};
    const Layer& layer = layers_[next_];
    const std::string name = layer.name.empty() ? path() : layer.name;
    throw Refusal{fmt::format("layer {} ({}) is not {}", name, kind_name(layer.kind), expected)};
  }

 private:
  const std::vector<Layer>& layers_;
  std::string path_;
  size_t next_ = 0;
};

// Goes through a network; without weights only to see whether it can be planned.
class Planner {
 public:
  Planner(const Network& network, const Weights* weights, ResidualPlan& plan)
      : network_(network), weights_(weights), plan_(plan) {}

  void run() {
    const Shape input = {residual::kImageChannels, residual::kImageSide, residual::kImageSide};
    if (network_.input != input) {
      throw Refusal{fmt::format("its images are [{}], not [{}]", fmt::join(network_.input, ", "),
                                fmt::join(input, ", "))};
    }
    LayerWalk layers(network_.layers, "");
    const Layer& normalize = layers.take(Kind::kNormalize, "a normalisation");
    plan_.mean.assign(normalize.mean.begin(), normalize.mean.end());
    for (const double sd : normalize.sd) plan_.scale.push_back(static_cast<float>(1 / sd));
    plan_.stem = add(layers.take_conv(3, 1, residual::channels_of(0)), residual::kImageChannels);
    layers.take(Kind::kRelu, "a ReLU");
    while (layers.is_next(Kind::kResidual)) {
      add_block(layers);
      layers.take(Kind::kRelu, "a ReLU");
    }
    if (stage_ + 1 < residual::kStages || layer_list(0).empty()) {
      layers.refuse("a residual block: there must be three stages of them");
    }
    layers.take(Kind::kAvgPool, "the mean over all pixels");
    add_linear(layers.take(Kind::kLinear, "a linear layer"));
    layers.end("the last: nothing may follow the linear layer");
  }

 private:
  std::vector<PlannedConv>& layer_list(int stage) { return plan_.stages[stage].layers; }

  void add_block(LayerWalk& layers) {
    const std::string path = layers.path();
    const Layer& block = layers.peek();
    LayerWalk body(block.body, path + ".body."), shortcut(block.shortcut, path + ".shortcut.");
    const bool enters = body.is_next(Kind::kConv) && body.peek().stride != 1;
    if (enters && (stage_ + 1 == residual::kStages || layer_list(0).empty())) {
      body.refuse("a convolution that keeps the shape");
    }
    const int before = residual::channels_of(stage_);
    if (enters) ++stage_;
    const int channels = residual::channels_of(stage_);
    PlannedConv first = add(body.take_conv(3, enters ? 2 : 1, channels), before);
    body.take(Kind::kRelu, "a ReLU");
    PlannedConv second = add(body.take_conv(3, 1, channels), channels);
    body.end("the sum: nothing may follow a block's second convolution");
    if (enters) {
      PlannedStage& left = plan_.stages[stage_ - 1];
      left.enter = std::move(first);
      left.shortcut = add_shortcut(shortcut, before);
    } else {
      layer_list(stage_).push_back(std::move(first));
    }
    shortcut.end("the input itself");
    layer_list(stage_).push_back(std::move(second));
    layers.take(Kind::kResidual, "a residual block");
  }

  PlannedConv add_shortcut(LayerWalk& shortcut, int in) {
    if (!shortcut.is_next(Kind::kSubsample)) return add(shortcut.take_conv(1, 2, 2 * in), in);
    const Layer& layer = shortcut.peek();
    if (layer.stride != 2 || layer.outputs != 2 * in) {
      shortcut.refuse(fmt::format("every second pixel in {} channels", 2 * in));
    }
    shortcut.take(Kind::kSubsample, "");
    return subsampling(in);
  }

  PlannedConv add(const Layer& layer, int in) {
    const auto out = static_cast<int>(layer.outputs), kernel = static_cast<int>(layer.kernel);
    PlannedConv conv{layer.name, in, out, kernel, {}, {}};
    take_weights(layer, conv.weight, conv.bias);
    return conv;
  }

  void add_linear(const Layer& layer) {
    if (layer.outputs > residual::kMaxClasses) {
      throw Refusal{fmt::format("layer {} has {} classes, more than {}", layer.name, layer.outputs,
                                residual::kMaxClasses)};
    }
    plan_.classes = static_cast<int>(layer.outputs);
    take_weights(layer, plan_.linear, plan_.linear_bias);
  }

  void take_weights(const Layer& layer, Array& weight, Array& bias) {
    if (weights_ == nullptr) return;
    weight = weights_->at(next_++);
    bias = layer.bias ? weights_->at(next_++) : Array({layer.outputs});
  }

  const Network& network_;
  const Weights* weights_;
  ResidualPlan& plan_;
  int stage_ = 0;
  size_t next_ = 0;  // of the weights
};

}  // namespace

PlannedConv subsampling(int in) {
  PlannedConv conv{"", in, 2 * in, 1, Array({2 * in, in, 1, 1}), Array({2 * in})};
  for (int c = 0; c < in; ++c) conv.weight.floats()[c * in + c] = 1;
  return conv;
}

std::string residual_refusal(const Network& folded) {
  try {
    ResidualPlan plan;
    Planner(folded, nullptr, plan).run();
  } catch (const Refusal& refusal) {
    return refusal.why;
  }
  return {};
}

ResidualPlan plan_residual(const Model& folded) {
  const std::string refusal = residual_refusal(folded.network);
  check(refusal.empty(), "plan_residual: network {}: {}", folded.network.name, refusal);
  ResidualPlan plan;
  Planner(folded.network, &folded.weights, plan).run();
  return plan;
}

}  // namespace fedsmooth
