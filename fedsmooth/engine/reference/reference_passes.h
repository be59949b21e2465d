// The oracle: a network's passes in plain loops, for every kind of stage.
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

/// The oracle computes every part, and refuses one that it does not know, too.
inline constexpr Parts kReferenceParts = {
    Part::kNormalize, Part::kConv,      Part::kStandardize, Part::kLinear,  Part::kSubsample,
    Part::kBatchNorm, Part::kGroupNorm, Part::kSum,         Part::kRelu,    Part::kLeakyRelu,
    Part::kSilu,      Part::kGelu,      Part::kMaxPool,     Part::kAvgPool, Part::kDropout};

/// What a stage keeps of the last pass, as far as its gradient needs it.
template <typename Number>
struct Kept {
  Map<Number> y;  // the output, which others may read
  Map<Number> before_norm, before_activation;
  Map<Number> map, pooled;   // before and after pooling
  Statistics statistics;     // batch and group norm
  bool of_batch = false;     // whether they are the batch's
  std::vector<Number> kept;  // dropout: 0 or 1 / (1 - rate)
};

/// Passes over weights in `Number`, float or double.
template <typename Number>
class ReferenceNetwork {
 public:
  /// A Bug if a stage has another part than kReferenceParts.
  explicit ReferenceNetwork(const Network& network);

  std::vector<Values<Number>> weights;  // in the order of parameters()

  /// Images [B, C, H, W] to logits [B, K]; see Passes::forward().
  Map<Number> forward(const Map<Number>& images, const std::optional<Stream>& training);

  struct Gradients {
    Map<Number> images;
    std::vector<Values<Number>> weights;  // in the order of parameters(), empty if not trained
  };
  /// The gradient of a function of the last pass's logits.
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
  std::vector<Kept<Number>> kept_;  // of each stage
  std::optional<Stream> training_;
  std::vector<Map<Number>> map_gradients_;  // of each stage's output, as far as they are added up
  Gradients gradients_;
};

}  // namespace fedsmooth::reference

namespace fedsmooth {

std::unique_ptr<Passes> reference_passes(const Network& network);

/// Logits of images [B, C, H, W], in evaluation mode.
Array reference_logits(const Network& network, const Weights& weights, const Array& images);

}  // namespace fedsmooth
