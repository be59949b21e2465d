// Networks and inputs for tests of the engines.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "fedsmooth/model/architectures.h"
#include "fedsmooth/model/stages.h"
#include "tests/arrays.h"
#include "tests/layers.h"

namespace fedsmooth {

/// Layers with an even number of outputs have a bias, the others none.
inline Layer layer(Layer::Kind kind, const std::string& name, int64_t outputs = 0,
                   int64_t kernel = 1, int64_t stride = 1, int64_t padding = 0) {
  Layer made{kind, name, outputs, kernel, stride, padding};
  made.bias = outputs % 2 == 0;
  return made;
}

inline Layer two_channel_normalization() { return normalize({0.5, 0.1}, {0.5, 0.3}); }

/// A chain in which maxima are taken of maxima.
inline Network twice_pooled_network() {
  using Kind = Layer::Kind;
  const Layer pool = layer(Kind::kMaxPool, "", 0, 2, 2);
  return {"pools",
          {3, 32, 32},
          {normalize({0.5, 0.4, 0.3}, {0.5, 0.3, 0.4}), layer(Kind::kConv, "a", 16, 3, 1, 1),
           layer(Kind::kRelu, ""), pool, pool, layer(Kind::kConv, "b", 20, 3, 1, 1),
           layer(Kind::kRelu, ""), pool, layer(Kind::kLinear, "c", 10)}};
}

/// An architecture for 32x32 images, with a normalisation that differs between channels.
inline Network named_network(const std::string& name) {
  ModelOptions options;
  options.name = name;
  options.mean = {0.5, 0.4, 0.3};
  options.sd = {0.2, 0.25, 0.3};
  return build_network(options, {3, 32, 32}, 10);
}

inline void replace_activations(std::vector<Layer>& layers, Layer::Kind by) {
  for (Layer& layer : layers) {
    if (layer.kind == Layer::Kind::kRelu) layer.kind = by;
    replace_activations(layer.body, by);
    replace_activations(layer.shortcut, by);
  }
}

/// A network with another activation in place of every ReLU.
inline Network with_activation(Network network, Layer::Kind activation) {
  replace_activations(network.layers, activation);
  return network;
}

/// Whether a tensor is a bias before a norm. Statistics of a batch take it out again: its gradient
/// is zero, up to rounding.
inline bool is_shift_before_a_norm(const Network& network, size_t tensor) {
  return std::ranges::any_of(stages_of(network), [&](const Stage& stage) {
    return stage.norm && stage.is_product() && stage.op->bias && stage.op_tensor + 1 == tensor;
  });
}

inline void thin(std::vector<Layer>& layers, int64_t factor) {
  for (Layer& layer : layers) {
    if (layer.kind == Layer::Kind::kConv) layer.outputs /= factor;
    thin(layer.body, factor);
    thin(layer.shortcut, factor);
  }
}

/// A named network with one channel of `factor`: its structure, at a fraction of its arithmetic.
/// Not for networks whose shortcuts fill up with channels.
inline Network thin_network(const std::string& name, int64_t factor) {
  Network network = named_network(name);
  thin(network.layers, factor);
  return network;
}

}  // namespace fedsmooth
