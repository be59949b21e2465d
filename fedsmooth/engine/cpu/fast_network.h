// The fast evaluator of a network at one fixed batch size on one CPU core: maps are [B, H, W, C],
// every convolution and linear layer is a matrix product of fixed shape, and weights are laid out
// once. engine/reference is its oracle.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/engine/cpu/fast_steps.h"

namespace fedsmooth {

class FastNetwork {
 public:
  /// The parts of a stage that a FastNetwork computes. A stage with any other part is refused.
  /// Dropout is accepted because it is the identity in an evaluation.
  static constexpr Parts kParts = {Part::kNormalize, Part::kConv, Part::kLinear,  Part::kSubsample,
                                   Part::kBatchNorm, Part::kSum,  Part::kRelu,    Part::kLeakyRelu,
                                   Part::kSilu,      Part::kGelu, Part::kMaxPool, Part::kAvgPool,
                                   Part::kDropout};

  /// Returns why a FastNetwork cannot run a network, with the name of the stage; empty if it can.
  /// It requires stages of kParts, with one normalisation, at the beginning, and logits at the end.
  static std::string refusal(const Network& network);

  FastNetwork(const Network& network, const Weights& weights, int64_t batch);

  /// Maps images [batch, C, H, W] of the network's shape to logits [batch, K]. Copies of a
  /// FastNetwork share the weights but not the scratch memory, so each thread needs a copy.
  Array operator()(const Array& images);

  /// Values of PlacedStep::x and `saved` that stand for the images and for no map.
  static constexpr int kImages = -1, kNone = -2;

  /// A step, the steps whose results it reads, and the buffer that takes its own.
  struct PlacedStep {
    FastStep step;
    int x, saved;
    int buffer = 0;
  };

 private:
  void run(const float* images, float* logits);

  std::vector<PlacedStep> steps_;
  Shape input_;
  int64_t batch_, classes_;
  int64_t part_;                          // images that pass through all steps together
  std::vector<std::vector<float>> maps_;  // the buffers, allocated at the first call
  std::vector<float> scratch_;
};

}  // namespace fedsmooth
