// Networks and inputs for tests of the engines.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/model/architectures.h"
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

}  // namespace fedsmooth
