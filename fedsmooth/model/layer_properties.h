// The one list of the properties of each kind of layer. Model files store them, and an engine that
// accepts a kind computes all of them. A layer in which any other property is set is refused, never
// computed without it.
#pragma once

#include "fedsmooth/model/network.h"

namespace fedsmooth {

/// Calls use(key, member) for each property of a kind, such as use("kernel", &Layer::kernel).
template <typename Use>
void for_each_property(Layer::Kind kind, const Use& use) {
  using Kind = Layer::Kind;
  switch (kind) {
    case Kind::kNormalize:
      use("mean", &Layer::mean);
      use("sd", &Layer::sd);
      break;
    case Kind::kConv:
      use("kernel", &Layer::kernel);
      use("stride", &Layer::stride);
      use("padding", &Layer::padding);
      use("standardize", &Layer::standardize);
      [[fallthrough]];
    case Kind::kLinear:
      use("outputs", &Layer::outputs);
      use("bias", &Layer::bias);
      break;
    case Kind::kGroupNorm:
      use("groups", &Layer::groups);
      break;
    case Kind::kMaxPool:
      use("kernel", &Layer::kernel);
      use("stride", &Layer::stride);
      break;
    case Kind::kSubsample:
      use("stride", &Layer::stride);
      use("outputs", &Layer::outputs);
      break;
    case Kind::kLeakyRelu:
      use("slope", &Layer::slope);
      break;
    case Kind::kDropout:
      use("drop_rate", &Layer::drop_rate);
      break;
    case Kind::kResidual:
      use("body", &Layer::body);
      use("shortcut", &Layer::shortcut);
      break;
    case Kind::kBatchNorm:
    case Kind::kRelu:
    case Kind::kSilu:
    case Kind::kGelu:
    case Kind::kAvgPool:
      break;
  }
}

/// Returns whether all properties of the layer that its kind does not have are at their defaults.
inline bool has_only_its_properties(const Layer& layer) {
  Layer known{layer.kind, layer.name};
  for_each_property(layer.kind, [&](const char*, auto member) { known.*member = layer.*member; });
  return known == layer;
}

}  // namespace fedsmooth
