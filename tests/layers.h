// Layers for tests, in one expression each.
#pragma once

#include <utility>
#include <vector>

#include "fedsmooth/model/network.h"

namespace fedsmooth {

inline Layer conv(int64_t outputs, int64_t kernel, int64_t stride, int64_t padding, bool bias) {
  Layer layer{Layer::Kind::kConv, "conv", outputs, kernel, stride, padding};
  layer.bias = bias;
  return layer;
}

inline Layer linear(int64_t outputs, bool bias) {
  Layer layer{Layer::Kind::kLinear, "linear", outputs};
  layer.bias = bias;
  return layer;
}

inline Layer normalize(std::vector<double> mean, std::vector<double> sd) {
  Layer layer{Layer::Kind::kNormalize};
  layer.mean = std::move(mean);
  layer.sd = std::move(sd);
  return layer;
}

inline Layer residual(std::vector<Layer> body, std::vector<Layer> shortcut) {
  Layer layer{Layer::Kind::kResidual};
  layer.body = std::move(body);
  layer.shortcut = std::move(shortcut);
  return layer;
}

}  // namespace fedsmooth
