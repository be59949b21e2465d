// The properties that layers of each kind have, in one list: model files carry them, and an engine
// that takes a kind computes all of them. What else is set in a layer belongs to nobody: it is
// refused, never ignored.
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

/// Whether everything else in a layer, apart from its name, is as it is by default.
inline bool has_only_its_properties(const Layer& layer) {
  Layer known{layer.kind, layer.name};
  for_each_property(layer.kind, [&](const char*, auto member) { known.*member = layer.*member; });
  return known == layer;
}

}  // namespace fedsmooth
