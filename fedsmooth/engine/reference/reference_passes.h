// The oracle: a network's passes in plain loops, for every kind of layer.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "fedsmooth/engine/reference/layers.h"
#include "fedsmooth/federated/passes.h"

namespace fedsmooth::reference {

/// A layer in its place, and what it keeps of the last pass.
template <typename Number>
struct Stage {
  Layer layer;
  Shape in, out;
  size_t weight = 0;                  // the first of its tensors
  std::vector<Stage> body, shortcut;  // of a residual block
  Map<Number> x, y;                   // input; output where the gradient needs it
  std::vector<Number> kept;           // dropout: 0 or 1 / (1 - rate)
  Statistics statistics;              // batch norm
  bool of_batch = false;              // whether they are the batch's
};

/// Passes over weights in `Number`, float or double.
template <typename Number>
class ReferenceNetwork {
 public:
  explicit ReferenceNetwork(const Network& network);

  std::vector<Values<Number>> weights;  // in the order of parameters()

  /// Images [B, C, H, W] to logits [B, K]; see Passes::forward().
  Map<Number> forward(const Map<Number>& images, const std::optional<Stream>& training);

  struct Gradients {
    Map<Number> images;
    std::vector<Values<Number>> weights;  // in the order of parameters(), empty if not trained
  };
  /// Of a function of the last pass's logits.
  Gradients backward(const Map<Number>& gradient);

 private:
  Map<Number> run(std::vector<Stage<Number>>& stages, Map<Number> x);
  Map<Number> apply(Stage<Number>& stage, const Map<Number>& x);
  Map<Number> run_back(std::vector<Stage<Number>>& stages, Map<Number> dy);
  Map<Number> apply_back(Stage<Number>& stage, const Map<Number>& dy);

  std::vector<Stage<Number>> stages_;
  std::optional<Stream> training_;
  uint32_t dropped_ = 0;  // dropout layers so far: each draws a sample of its own
  Gradients gradients_;
};

}  // namespace fedsmooth::reference

namespace fedsmooth {

std::unique_ptr<Passes> reference_passes(const Network& network);

/// Logits of images [B, C, H, W], in evaluation mode.
Array reference_logits(const Network& network, const Weights& weights, const Array& images);

}  // namespace fedsmooth
