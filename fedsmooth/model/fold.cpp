#include "fedsmooth/model/fold.h"

#include <cmath>

#include "fedsmooth/base/check.h"
#include "fedsmooth/model/standardize.h"

namespace fedsmooth {
namespace {

using Kind = Layer::Kind;

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
      if (layer.kind == Kind::kConv && layer.standardize) make_plain(folded.back());
    }
    return folded;
  }

  const Weights& weights() const { return folded_weights_; }

 private:
  const Array& take() {
    check(next_ < weights_.size(), "fold_batch_norm: the network has more than {} tensors",
          weights_.size());
    return weights_[next_++];
  }

  // The convolution's tensors are the last that were kept.
  void make_plain(Layer& conv) {
    Array& kernel = folded_weights_.end()[conv.bias ? -2 : -1];
    kernel = kernel.clone();
    const int64_t outputs = kernel.size(0), values = kernel.count() / outputs;
    standardize({outputs, values, values, 1}, kernel.floats(), kernel.floats());
    conv.standardize = false;
  }

  // In double, rounded once. The convolution's tensors are the last that were kept.
  void fold_into(Layer& conv) {
    const Array &weight = take(), &bias = take(), &mean = take(), &variance = take();
    if (!conv.bias) folded_weights_.push_back(Array(mean.sizes()));
    conv.bias = true;
    Array shift = folded_weights_.back().clone(), kernel = folded_weights_.end()[-2].clone();
    const int64_t outputs = kernel.size(0), taps = kernel.count() / outputs;
    for (int64_t k = 0; k < outputs; ++k) {
      const double scale =
          weight.floats()[k] / std::sqrt(double{variance.floats()[k]} + kBatchNormEpsilon);
      float& moved = shift.floats()[k];
      moved = static_cast<float>((double{moved} - double{mean.floats()[k]}) * scale +
                                 double{bias.floats()[k]});
      float* row = kernel.floats() + k * taps;
      for (int64_t i = 0; i < taps; ++i) row[i] = static_cast<float>(double{row[i]} * scale);
    }
    folded_weights_.back() = shift;
    folded_weights_.end()[-2] = kernel;
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
