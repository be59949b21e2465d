// The one lowering of a network: its layer list as fused stages, which every engine interprets. A
// stage is
//
//     y = dropout(pool(activation(norm(op(x)) + saved))),
//
// where any part may be missing. `x` and `saved` are the outputs of earlier stages, so that the
// stages are a graph, listed in an order in which they can be run. A residual block is a saved map:
// the last stage of its body adds what the shortcut gives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fedsmooth/model/parts.h"

namespace fedsmooth {

struct Stage {
  /// In place of a stage's index: the network's input.
  static constexpr int kImages = -1;

  std::string name;                 // its first layer's; without one, that layer's path in the list
  int input = kImages;              // the stage whose output is x
  std::optional<Layer> op;          // normalize, conv, linear or subsample
  std::optional<Layer> norm;        // batch or group norm
  std::optional<int> saved;         // the stage whose output is added
  std::optional<Layer> activation;  // relu, leaky-relu, silu or gelu
  std::optional<Layer> pool;        // max-pool or avg-pool
  std::optional<Layer> dropout;
  Parts parts;                            // of all layers above: what an engine has to compute
  Shape in = {}, map = {}, out = {};      // of x, of what is pooled, of y
  size_t op_tensor = 0, norm_tensor = 0;  // each one's first in the order of parameters()
  uint32_t dropout_sample = 0;            // dropouts that a forward pass meets before this one

  bool is_op(Layer::Kind kind) const { return op && op->kind == kind; }
  /// A convolution or a linear layer.
  bool is_product() const { return is_op(Layer::Kind::kConv) || is_op(Layer::Kind::kLinear); }
  bool is_norm(Layer::Kind kind) const { return norm && norm->kind == kind; }
  bool is_activation(Layer::Kind kind) const { return activation && activation->kind == kind; }
  bool is_pool(Layer::Kind kind) const { return pool && pool->kind == kind; }
};

/// The last stage's output is the network's; without layers there is none. An Error where layers do
/// not fit together.
std::vector<Stage> stages_of(const Network& network);

/// Its name and its parts, such as "layer1.0.conv2 (conv, batch-norm, sum, relu)", for an engine
/// that refuses it.
std::string describe(const Stage& stage);

/// Why an engine that computes the parts `taken` refuses these stages: the first one that has
/// another part, and that part. Empty if there is none.
std::string parts_refusal(const std::vector<Stage>& stages, Parts taken);

/// Why an engine refuses these stages that normalises images as it reads them: it needs a first
/// stage that normalises, and no other that does or that reads the images. Empty if it is so.
std::string normalization_refusal(const std::vector<Stage>& stages);

}  // namespace fedsmooth
