// Networks with a property in them that no engine knows.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "fedsmooth/model/network.h"

namespace fedsmooth {

inline std::vector<Layer*> all_layers(std::vector<Layer>& layers) {
  std::vector<Layer*> found;
  for (Layer& layer : layers) {
    found.push_back(&layer);
    for (std::vector<Layer>* branch : {&layer.body, &layer.shortcut}) {
      for (Layer* inside : all_layers(*branch)) found.push_back(inside);
    }
  }
  return found;
}

/// Gives each layer in turn a property that its kind does not have: groups of a convolution or a
/// linear layer, a stride of a norm or a mean, padding of other pools, a drop rate elsewhere.
/// `refuse` has to name the stage and the property, and to accept the network without it.
inline void expect_refusals(const std::function<std::string(const Network&)>& refuse,
                            Network network) {
  using Kind = Layer::Kind;
  SCOPED_TRACE(network.name);
  ASSERT_EQ(refuse(network), "");
  for (Layer* layer : all_layers(network.layers)) {
    const Layer before = *layer;
    if (layer->kind == Kind::kConv || layer->kind == Kind::kLinear) {
      layer->groups = 2;
    } else if (layer->kind == Kind::kBatchNorm || layer->kind == Kind::kGroupNorm ||
               layer->kind == Kind::kAvgPool || layer->kind == Kind::kDropout) {
      layer->stride = 2;
    } else if (layer->kind == Kind::kMaxPool || layer->kind == Kind::kSubsample) {
      layer->padding = 1;
    } else {
      layer->drop_rate = 0.25;
    }
    const std::string why = refuse(network);
    EXPECT_NE(why.find("unknown property)"), std::string::npos) << before.name << ": " << why;
    EXPECT_NE(why.find("stage "), std::string::npos) << why;
    layer->groups = before.groups;
    layer->stride = before.stride;
    layer->padding = before.padding;
    layer->drop_rate = before.drop_rate;
  }
  EXPECT_EQ(refuse(network), "");
}

}  // namespace fedsmooth
