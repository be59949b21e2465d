// The one lowering of a network: a list of fused stages, which every engine interprets. A stage is
//
//     y = dropout(pool(activation(norm(op(x)) + saved))),
//
// where any part may be missing. `x` and `saved` are outputs of earlier stages, so the stages form
// a graph, listed in an order in which they can be evaluated. In a residual block the last stage of
// the body adds the output of the shortcut, which is its `saved`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fedsmooth/model/parts.h"

namespace fedsmooth {

struct Stage {
  /// Stands for the network's input in place of a stage's index.
  static constexpr int kImages = -1;

  std::string name;                 // of its first layer, or that layer's path in the list
  int input = kImages;              // index of the stage whose output is x
  std::optional<Layer> op;          // normalize, conv, linear or subsample
  std::optional<Layer> norm;        // batch or group norm
  std::optional<int> saved;         // index of the stage whose output is added
  std::optional<Layer> activation;  // relu, leaky-relu, silu or gelu
  std::optional<Layer> pool;        // max-pool or avg-pool
  std::optional<Layer> dropout;
  Parts parts;                            // all parts that an engine has to compute
  Shape in = {}, map = {}, out = {};      // shapes of x, of the pool's input, of y
  size_t op_tensor = 0, norm_tensor = 0;  // first tensor of each, an index into parameters()
  uint32_t dropout_sample = 0;            // number of dropouts in earlier stages

  bool is_op(Layer::Kind kind) const { return op && op->kind == kind; }
  /// Returns whether `op` is a convolution or a linear layer.
  bool is_product() const { return is_op(Layer::Kind::kConv) || is_op(Layer::Kind::kLinear); }
  bool is_norm(Layer::Kind kind) const { return norm && norm->kind == kind; }
  bool is_activation(Layer::Kind kind) const { return activation && activation->kind == kind; }
  bool is_pool(Layer::Kind kind) const { return pool && pool->kind == kind; }
};

/// Returns the stages; the last one's output is the network's. A network without layers has no
/// stages. Throws an Error where layers do not fit together.
std::vector<Stage> stages_of(const Network& network);

/// Returns the name and the parts of a stage, such as "layer1.0.conv2 (conv, batch-norm, sum,
/// relu)", for the message of an engine that refuses it.
std::string describe(const Stage& stage);

/// Returns why an engine that computes the parts `taken` refuses these stages: the first stage that
/// has another part, and that part. Empty if there is none.
std::string parts_refusal(const std::vector<Stage>& stages, Parts taken);

/// Returns why an engine that normalises images while it reads them refuses these stages. It
/// requires that the first stage normalises, and that no other stage normalises or reads the
/// images. Empty if both hold.
std::string normalization_refusal(const std::vector<Stage>& stages);

}  // namespace fedsmooth
