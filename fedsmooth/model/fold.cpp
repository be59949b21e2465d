#include "fedsmooth/model/fold.h"

#include <ATen/ATen.h>

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

size_t count_tensors(const Layer& layer) {
  if (layer.kind == Kind::kBatchNorm) return 4;
  if (layer.kind != Kind::kConv && layer.kind != Kind::kLinear) return 0;
  return layer.bias ? 2 : 1;
}

// Takes the weights in the order in which layers use them.
class Folding {
 public:
  explicit Folding(const Weights& weights) : weights_(weights) {}

  std::vector<Layer> fold(const std::vector<Layer>& layers) {
    std::vector<Layer> folded;
    for (const Layer& layer : layers) {
      if (layer.kind == Kind::kBatchNorm && !folded.empty() && folded.back().kind == Kind::kConv) {
        fold_into(folded.back());
        continue;
      }
      folded.push_back(layer);
      folded.back().body = fold(layer.body);
      folded.back().shortcut = fold(layer.shortcut);
      for (size_t i = 0; i < count_tensors(layer); ++i) folded_weights_.push_back(take());
    }
    return folded;
  }

  const Weights& weights() const { return folded_weights_; }

 private:
  const Tensor& take() {
    TORCH_CHECK(next_ < weights_.size(), "fold_batch_norm: the network has more than ",
                weights_.size(), " tensors");
    return weights_[next_++];
  }

  Tensor take_double() { return take().to(at::kDouble); }

  // The convolution's tensors are the last that were kept.
  void fold_into(Layer& conv) {
    const Tensor weight = take_double(), bias = take_double();
    const Tensor mean = take_double(), variance = take_double();
    const Tensor scale = weight / (variance + kBatchNormEpsilon).sqrt();
    if (!conv.bias) folded_weights_.push_back(at::zeros_like(mean));
    conv.bias = true;
    Tensor& shift = folded_weights_.back();
    Tensor& kernel = folded_weights_.end()[-2];
    shift = ((shift.to(at::kDouble) - mean) * scale + bias).to(at::kFloat);
    kernel = (kernel.to(at::kDouble) * scale.view({-1, 1, 1, 1})).to(at::kFloat);
  }

  const Weights& weights_;
  Weights folded_weights_;
  size_t next_ = 0;
};

}  // namespace

Model fold_batch_norm(const Model& model) {
  Model folded = model;
  Folding folding(model.weights);
  folded.network.layers = folding.fold(model.network.layers);
  folded.weights = folding.weights();
  return folded;
}

}  // namespace fedsmooth
