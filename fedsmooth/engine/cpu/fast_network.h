// A network evaluated at one fixed batch size as fast as one CPU core can: maps as [B, H, W, C],
// every convolution and linear layer a matrix product of fixed shape, weights laid out once. The
// readable twin and oracle is engine/reference.
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

  /// Why it cannot run a network, with the stage that it does not know; empty if it can. It takes
  /// networks of kParts that begin with their only normalisation and end in logits.
  static std::string refusal(const Network& network);

  FastNetwork(const Network& network, const Weights& weights, int64_t batch);

  /// Images [batch, C, H, W] to logits [batch, K]. Copies share the weights but not the scratch
  /// memory: one copy per thread.
  Array operator()(const Array& images);

  /// In place of a step's index: the images; no map.
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
  int64_t batch_, classes_;
  int64_t part_;                          // images that go through all steps together
  std::vector<std::vector<float>> maps_;  // the buffers, allocated at the first call
  std::vector<float> scratch_;
};

}  // namespace fedsmooth
