// Makes the layers of the named networks, each in one expression.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "fedsmooth/model/network.h"

namespace fedsmooth::layer_makers {

inline Layer conv(std::string name, int64_t outputs, int64_t kernel, int64_t stride,
                  int64_t padding, bool bias = true) {
  Layer layer{Layer::Kind::kConv, std::move(name), outputs, kernel, stride, padding};
  layer.bias = bias;
  return layer;
}

inline Layer linear(std::string name, int64_t outputs) {
  return {Layer::Kind::kLinear, std::move(name), outputs};
}

inline Layer relu() { return {Layer::Kind::kRelu}; }

inline Layer max_pool(int64_t size) { return {Layer::Kind::kMaxPool, "", 0, size, size}; }

inline Layer dropout(double rate) {
  Layer layer{Layer::Kind::kDropout};
  layer.drop_rate = rate;
  return layer;
}

inline Layer subsample(int64_t channels, int64_t stride) {
  return {Layer::Kind::kSubsample, "", channels, 1, stride};
}

}  // namespace fedsmooth::layer_makers
