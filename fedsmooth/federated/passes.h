// Forward and backward passes through a network, with weights of their own. Clients train by them.
// The reference (engine/reference) is written to be read; faster passes are tested against it.
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

/// Passes of one network, for one thread at a time.
class Passes {
 public:
  virtual ~Passes() = default;

  /// Copies the weights, which must be in the order and shapes of parameters().
  virtual void load(const Weights& weights) = 0;
  /// Returns a copy of the current weights.
  virtual Weights weights() const = 0;
  /// Returns the memory of the trained weights, one span per tensor in the order of parameters();
  /// within a tensor the engine chooses the order. The caller may write to it until the next
  /// load().
  virtual std::vector<std::span<float>> trained_values() = 0;

  /// Maps images [B, C, H, W] in [0, 1] to logits [B, K] in evaluation mode, or with a stream in
  /// training mode: batch norm normalises by the batch and updates its running statistics, dropout
  /// draws from the stream. Keeps what backward passes need until the next forward pass.
  virtual Array forward(const Array& images, const std::optional<Stream>& training) = 0;

  /// Takes the gradient [B, K] of a loss with respect to the logits of the last forward pass, and
  /// returns its gradient with respect to the images, [B, C, H, W].
  virtual Array backward_to_images(const Array& gradient) = 0;
  /// Takes the gradient of a loss with respect to the logits of the last forward pass, and returns
  /// its gradient with respect to the trained weights, in the order of parameters(). The pointers
  /// are valid until the next pass; until then the caller may update the weights.
  virtual std::vector<WeightGradient> backward_to_weights(const Array& gradient) = 0;
};

using MakePasses = std::function<std::unique_ptr<Passes>(const Network&)>;

/// Returns the network in evaluation mode as a classifier with gradients. `passes` must outlive it.
inline DifferentiableClassifier answers_of(Passes& passes) {
  return {[&passes](const Array& x) { return passes.forward(x, std::nullopt); },
          [&passes](const Array& gradient) { return passes.backward_to_images(gradient); }};
}

}  // namespace fedsmooth
