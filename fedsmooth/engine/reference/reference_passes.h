// The oracle of all engines: the passes of a network in plain loops, for every kind of stage.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "fedsmooth/engine/reference/convolutions.h"
#include "fedsmooth/engine/reference/layers.h"
#include "fedsmooth/engine/reference/norms.h"
#include "fedsmooth/federated/passes.h"
#include "fedsmooth/model/stages.h"

namespace fedsmooth::reference {

/// The parts of a stage that the reference computes. It refuses any other, as every engine does.
inline constexpr Parts kReferenceParts = {
    Part::kNormalize, Part::kConv,      Part::kStandardize, Part::kLinear,  Part::kSubsample,
    Part::kBatchNorm, Part::kGroupNorm, Part::kSum,         Part::kRelu,    Part::kLeakyRelu,
    Part::kSilu,      Part::kGelu,      Part::kMaxPool,     Part::kAvgPool, Part::kDropout};

/// The values that a stage keeps from the last forward pass for its gradient.
template <typename Number>
struct Kept {
  Map<Number> y;  // the output, which other stages may read
  Map<Number> before_norm, before_activation;
  Map<Number> map, pooled;   // before and after pooling
  Statistics statistics;     // batch and group norm
  bool of_batch = false;     // whether they are the batch's
  std::vector<Number> kept;  // dropout: 0 or 1 / (1 - rate)
};

/// Passes with weights in `Number`, float or double. For one thread at a time.
template <typename Number>
class ReferenceNetwork {
 public:
  /// Throws a Bug if a stage has a part that is not in kReferenceParts.
  explicit ReferenceNetwork(const Network& network);

  std::vector<Values<Number>> weights;  // in the order of parameters()

  /// Maps images [B, C, H, W] to logits [B, K]; see Passes::forward().
  Map<Number> forward(const Map<Number>& images, const std::optional<Stream>& training);

  struct Gradients {
    Map<Number> images;
    std::vector<Values<Number>> weights;  // in the order of parameters(), empty if not trained
  };
  /// Returns the gradients of a loss, given its gradient with respect to the last pass's logits.
  Gradients backward(const Map<Number>& gradient);

 private:
  const Map<Number>& map_of(int stage) const;
  Map<Number> apply_op(const Stage& stage, const Map<Number>& x);
  Map<Number> apply_norm(const Stage& stage, Map<Number> x, Kept<Number>& kept);
  Map<Number> apply(const Stage& stage, Kept<Number>& kept);

  Map<Number>& gradient_of(int stage);
  Map<Number> norm_back(const Stage& stage, const Kept<Number>& kept, const Map<Number>& dy);
  Map<Number> op_back(const Stage& stage, Map<Number> dy);
  void apply_back(const Stage& stage, const Kept<Number>& kept, Map<Number> dy);

  std::vector<Stage> stages_;
  Map<Number> images_;
  std::vector<Kept<Number>> kept_;  // for each stage
  std::optional<Stream> training_;
  std::vector<Map<Number>> map_gradients_;  // for each stage's output, summed so far
  Gradients gradients_;
};

}  // namespace fedsmooth::reference

namespace fedsmooth {

/// Returns the reference as passes in float.
std::unique_ptr<Passes> reference_passes(const Network& network);

/// Returns the logits of images [B, C, H, W] in evaluation mode.
Array reference_logits(const Network& network, const Weights& weights, const Array& images);

}  // namespace fedsmooth
