// A plain layer list with both its gradients, for training on one core. Maps are [H, W, C, lanes]
// with one lane per image, so that weights, which change at every step, are read where they lie:
// all work is multiply() of matrix_product.h. Only products with real pixels are done, and on maps
// of 2x2 and 4x4 only few of those (toeplitz_schemes.h). The readable twin and oracle is forward()
// in model/network.h.
#pragma once

#include <memory>

#include "fedsmooth/federated/client.h"

namespace fedsmooth {

class LaneNetwork {
 public:
  /// Layer lists of normalisation, convolution, ReLU, max-pooling and linear layers.
  static bool supports(const Network& network);

  explicit LaneNetwork(const Network& network);
  ~LaneNetwork();

  /// Images [B, C, H, W] to logits [B, K]. Remembers what the gradients need until the next pass.
  Tensor forward(const Weights& weights, const Tensor& images);

  struct Gradients {
    Tensor images;    // [B, C, H, W], or undefined
    Weights weights;  // in the shapes of the weights, or empty
  };

  /// Gradients of a function of the last pass's logits, which has `gradient` [B, K] there.
  Gradients backward(const Tensor& gradient, bool of_images, bool of_weights);

  /// Forward passes so far.
  int64_t passes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The same weights laid out as a LaneNetwork reads them, [k, k, C, K]; shapes stay. Other layouts
/// work too but are copied at every pass.
Weights lay_out_for_lanes(const Network& network, const Weights& weights);

/// The network for LibTorch's autograd: gradients flow to the images or to the weights, whichever
/// ask for them, and must be taken before the next pass.
Forward differentiable(std::shared_ptr<LaneNetwork> network);

}  // namespace fedsmooth
