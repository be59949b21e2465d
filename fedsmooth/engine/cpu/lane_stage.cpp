#include "fedsmooth/engine/cpu/lane_stage.h"

#include <algorithm>

#include "fedsmooth/engine/cpu/activations.h"
#include "fedsmooth/engine/cpu/lane_pools.h"
#include "fedsmooth/engine/cpu/lane_tiles.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

LaneConvolution convolution_of(const Stage& stage) {
  const Layer& layer = *stage.op;
  const bool relu = stage.is_activation(Kind::kRelu) && !stage.norm && !stage.saved;
  LaneConvolution conv{stage.in,      stage.map,  layer.kernel, layer.stride,
                       layer.padding, layer.bias, relu};
  if (layer.kind == Kind::kLinear) {
    conv.kernel = stage.in[1];
    conv.stride = 1;
  }
  // Networks without norms keep the products, and the bits, that their models were trained by.
  conv.tiles = stage.norm && fits_tiles(conv);
  return conv;
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

}  // namespace

LaneStage::LaneStage(const Stage& of) : stage(of), conv() {
  if (of.is_product()) conv = convolution_of(of);
}

void LaneStage::load(const Weights& weights) {
  const auto values = [&](size_t i) {
    return std::vector<float>(weights[i].floats(), weights[i].floats() + weights[i].count());
  };
  if (stage.is_product()) {
    const float* weight = weights[stage.op_tensor].floats();
    kernel.resize(weights[stage.op_tensor].count());
    for_each_weight(conv, [&](int64_t there, int64_t here) { kernel[here] = weight[there]; });
    bias.assign(conv.out[0], 0.0f);
    if (conv.bias) bias = values(stage.op_tensor + 1);
  }
  if (!stage.norm) return;
  norm.weight = values(stage.norm_tensor);
  norm.bias = values(stage.norm_tensor + 1);
  norm.running_mean = values(stage.norm_tensor + 2);
  norm.running_variance = values(stage.norm_tensor + 3);
}

void LaneStage::store(const std::vector<Parameter>& parameters, Weights& weights) const {
  if (stage.is_product()) {
    Array weight(parameters[stage.op_tensor].shape);
    float* to = weight.floats();
    for_each_weight(conv, [&](int64_t there, int64_t here) { to[there] = kernel[here]; });
    weights[stage.op_tensor] = weight;
    if (conv.bias) weights[stage.op_tensor + 1] = Array::of({conv.out[0]}, bias);
  }
  if (!stage.norm) return;
  size_t tensor = stage.norm_tensor;
  for (const auto* values :
       {&norm.weight, &norm.bias, &norm.running_mean, &norm.running_variance}) {
    weights[tensor++] = Array::of({stage.map[0]}, *values);
  }
}

void LaneStage::run(const std::vector<float>& x, const float* saved, Lanes lanes, bool training,
                    bool fresh) {
  map.resize(size_of(stage.map) * lanes.count);
  std::vector<float>& first = stage.norm ? before_norm : map;
  first.resize(map.size());
  if (stage.is_product()) {
    if (stage.op->standardize && fresh) {
      standardized.resize(kernel.size());
      standardize(filter_layout(), kernel.data(), standardized.data());
    }
    convolve(conv, lanes, filters().data(), bias.data(), x.data(), first.data(), fresh, scratch);
  } else if (stage.op) {
    subsample(*stage.op, stage.in, stage.map, lanes, x.data(), first.data());
  } else {
    first = x;
  }
  finish(saved, lanes, training);
  if (!stage.pool) return;
  pooled.resize(size_of(stage.out) * lanes.count);
  if (stage.is_pool(Kind::kMaxPool)) {
    pool(*stage.pool, stage.map, stage.out, lanes, map.data(), pooled.data());
  } else {
    average_pool(stage.map, lanes, map.data(), pooled.data());
  }
}

// Norm, sum and activation, as far as the product has not done them.
void LaneStage::finish(const float* saved, Lanes lanes, bool training) {
  finish_with_relu(saved, lanes, training);
  if (!stage.activation || stage.is_activation(Kind::kRelu)) return;
  before_activation = map;
  activate(*stage.activation, std::ssize(map), map.data());
}

FilterLayout LaneStage::filter_layout() const {
  const int64_t outputs = conv.out[0];
  return {outputs, std::ssize(kernel) / outputs, 1, outputs};
}

void LaneStage::find_kernel_gradient(const std::vector<float>& x, const std::vector<float>& dy,
                                     Lanes lanes) {
  gradient = kernel_gradient(conv, lanes, x.data(), dy.data(), scratch);
  if (!stage.op->standardize) return;
  standardize_gradient(filter_layout(), kernel.data(), gradient.kernel.data());
}

// A ReLU's output says where it passes gradients.
void LaneStage::activation_back(std::vector<float>& dy) const {
  if (stage.is_activation(Kind::kRelu)) {
    relu_gradient(map.data(), std::ssize(dy), dy.data());
  } else {
    activation_gradient(*stage.activation, before_activation.data(), std::ssize(dy), dy.data());
  }
}

void LaneStage::finish_with_relu(const float* saved, Lanes lanes, bool training) {
  const bool has_relu = stage.is_activation(Kind::kRelu);
  if (stage.norm) {
    if (training) {
      use_batch_statistics(pixels(), lanes, before_norm.data(), norm);
    } else {
      use_running_statistics(norm);
    }
    return apply_norm(norm, pixels(), lanes, before_norm.data(), saved, has_relu, map.data());
  }
  if (saved != nullptr) add_map(saved, std::ssize(map), map.data());
  const bool done = stage.is_product() && conv.relu;
  if (has_relu && !done) relu(map.data(), std::ssize(map));
}

}  // namespace fedsmooth
