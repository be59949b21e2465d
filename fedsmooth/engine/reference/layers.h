// Every kind of layer, forwards and backwards, in plain loops over maps [B, C, H, W]: the text that
// faster engines are checked against. In float it is an engine of its own, for layers that no other
// knows; in double it is what finite differences are taken of. Sums are in double either way, but
// for those of a convolution.
#pragma once

#include <cstdint>
#include <vector>

#include "fedsmooth/model/network.h"

namespace fedsmooth::reference {

/// Values of `images` images, each of `shape`.
template <typename Number>
struct Map {
  int64_t images = 0;
  Shape shape = {};
  std::vector<Number> values;

  Map() = default;
  Map(int64_t count, const Shape& of)
      : images(count), shape(of), values(count * of[0] * of[1] * of[2], Number{0}) {}
  int64_t area() const { return shape[1] * shape[2]; }
  /// Values of one image.
  int64_t size() const { return shape[0] * area(); }
  Number* plane(int64_t image, int64_t channel) {
    return values.data() + (image * shape[0] + channel) * area();
  }
  const Number* plane(int64_t image, int64_t channel) const {
    return values.data() + (image * shape[0] + channel) * area();
  }
};

template <typename Number>
using Values = std::vector<Number>;

/// y = (x - mean) / sd per channel; dx = dy / sd.
template <typename Number>
Map<Number> normalize(const Layer& layer, const Map<Number>& x);
template <typename Number>
Map<Number> normalize_back(const Layer& layer, const Map<Number>& dy);

/// y[k, p] = bias[k] + sum over taps and channels of weight[k, c, i, j] x[c, p stride + (i, j) -
/// padding]. A linear layer is a convolution whose kernel is the whole map. `bias` may be empty.
template <typename Number>
Map<Number> convolve(const Layer& layer, const Map<Number>& x, const Values<Number>& weight,
                     const Values<Number>& bias, const Shape& out);
/// The input's gradient.
template <typename Number>
Map<Number> convolve_back(const Layer& layer, const Map<Number>& dy, const Values<Number>& weight,
                          const Shape& in);
/// The weights' gradients, [K, C, k, k] and [K].
template <typename Number>
Values<Number> weight_gradient(const Layer& layer, const Map<Number>& x, const Map<Number>& dy);
template <typename Number>
Values<Number> bias_gradient(const Map<Number>& dy);

template <typename Number>
Map<Number> relu(const Map<Number>& x);
/// Where the ReLU gave zero no gradient passes.
template <typename Number>
Map<Number> relu_back(const Map<Number>& y, const Map<Number>& dy);

/// The maximum over windows; NaN wins. Its gradient goes to the first pixel that has it.
template <typename Number>
Map<Number> max_pool(const Layer& layer, const Map<Number>& x, const Shape& out);
template <typename Number>
Map<Number> max_pool_back(const Layer& layer, const Map<Number>& x, const Map<Number>& y,
                          const Map<Number>& dy);

/// The mean over the whole map.
template <typename Number>
Map<Number> average_pool(const Map<Number>& x);
template <typename Number>
Map<Number> average_pool_back(const Map<Number>& dy, const Shape& in);

/// Every stride-th pixel; channels beyond the input's are zero.
template <typename Number>
Map<Number> subsample(const Layer& layer, const Map<Number>& x, const Shape& out);
template <typename Number>
Map<Number> subsample_back(const Layer& layer, const Map<Number>& dy, const Shape& in);

/// Mean and 1 / sqrt(variance + 1e-5) of each channel.
struct Statistics {
  std::vector<double> mean, scale;
};

/// Those of the batch, over images and pixels, with the biased variance. Running statistics move a
/// tenth of the way, by the unbiased variance, as in PyTorch.
template <typename Number>
Statistics batch_statistics(const Map<Number>& x, Values<Number>& running_mean,
                            Values<Number>& running_variance);
template <typename Number>
Statistics running_statistics(const Values<Number>& mean, const Values<Number>& variance);

/// y = weight (x - mean) scale + bias per channel.
template <typename Number>
Map<Number> batch_norm(const Map<Number>& x, const Statistics& statistics,
                       const Values<Number>& weight, const Values<Number>& bias);

template <typename Number>
struct BatchNormGradients {
  Map<Number> x;
  Values<Number> weight, bias;
};
/// `of_batch`: the statistics are those of x itself, and gradients flow through them.
template <typename Number>
BatchNormGradients<Number> batch_norm_back(const Map<Number>& x, const Map<Number>& dy,
                                           const Statistics& statistics,
                                           const Values<Number>& weight, bool of_batch);

}  // namespace fedsmooth::reference
