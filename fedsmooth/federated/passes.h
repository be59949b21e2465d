// A network's passes forwards and backwards, with weights of their own: what a client trains by.
// The reference (engine/reference) is written to be read; faster ones are tested against it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fedsmooth/base/classifier.h"
#include "fedsmooth/model/network.h"

namespace fedsmooth {

/// Trained values and a function's gradient with respect to them, in the same order.
struct WeightGradient {
  float* weights;
  const float* gradient;
  int64_t count;
};

/// Made for one network and one thread.
class Passes {
 public:
  virtual ~Passes() = default;

  /// Takes a copy of the weights, which are in the order and shapes of parameters().
  virtual void load(const Weights& weights) = 0;
  /// They as they are now.
  virtual Weights weights() const = 0;
  /// Where the trained ones lie, in the order of parameters(); within a tensor values may have an
  /// order of their own. They may be written until the next load().
  virtual std::vector<std::span<float>> trained_values() = 0;

  /// Images [B, C, H, W] in [0, 1] to logits [B, K], as the network answers. With a stream, as it
  /// trains: batch norm normalises by the batch and moves its running statistics, dropout drops by
  /// the stream. Remembers what the gradients need until the next pass.
  virtual Array forward(const Array& images, const std::optional<Stream>& training) = 0;

  /// For a function of the last pass's logits that has `gradient` [B, K] there: its gradient with
  /// respect to the images, [B, C, H, W].
  virtual Array backward_to_images(const Array& gradient) = 0;
  /// With respect to the trained weights, in the order of parameters(). Pointers are good until the
  /// next pass, before which the caller may move the weights.
  virtual std::vector<WeightGradient> backward_to_weights(const Array& gradient) = 0;
};

using MakePasses = std::function<std::unique_ptr<Passes>(const Network&)>;

/// The network as it answers, over passes that outlive it.
inline DifferentiableClassifier answers_of(Passes& passes) {
  return {[&passes](const Array& x) { return passes.forward(x, std::nullopt); },
          [&passes](const Array& gradient) { return passes.backward_to_images(gradient); }};
}

}  // namespace fedsmooth
