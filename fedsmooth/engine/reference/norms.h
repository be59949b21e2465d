// Forward and backward passes of normalisation: by constants, by the statistics of a batch, and by
// those of groups of an image's channels.
#pragma once

#include <vector>

#include "fedsmooth/engine/reference/map.h"

namespace fedsmooth::reference {

/// Compute y = (x - mean) / sd and dx = dy / sd per channel.
template <typename Number>
Map<Number> normalize(const Layer& layer, const Map<Number>& x);
template <typename Number>
Map<Number> normalize_back(const Layer& layer, const Map<Number>& dy);

/// Mean and scale = 1 / sqrt(variance + 1e-5) of each channel, or of each group of each image.
struct Statistics {
  std::vector<double> mean, scale;
};

/// Returns the statistics of the batch over images and pixels, with the biased variance, and moves
/// the running statistics a tenth of the way to them, with the unbiased variance, as in PyTorch.
template <typename Number>
Statistics batch_statistics(const Map<Number>& x, Values<Number>& running_mean,
                            Values<Number>& running_variance);
template <typename Number>
Statistics running_statistics(const Values<Number>& mean, const Values<Number>& variance);

/// Returns y = weight (x - mean) scale + bias per channel.
template <typename Number>
Map<Number> batch_norm(const Map<Number>& x, const Statistics& statistics,
                       const Values<Number>& weight, const Values<Number>& bias);

template <typename Number>
struct NormGradients {
  Map<Number> x;
  Values<Number> weight, bias;
};
/// With `of_batch` the statistics are those of x, and gradients flow through them.
template <typename Number>
NormGradients<Number> batch_norm_back(const Map<Number>& x, const Map<Number>& dy,
                                      const Statistics& statistics, const Values<Number>& weight,
                                      bool of_batch);

/// Returns the statistics of each image and group, [B, groups], with the biased variance.
template <typename Number>
Statistics group_statistics(const Map<Number>& x, int64_t groups);

/// Returns y = weight (x - mean) scale + bias, with the statistics of each image and group, and
/// weight and bias of each channel.
template <typename Number>
Map<Number> group_norm(const Map<Number>& x, int64_t groups, const Statistics& statistics,
                       const Values<Number>& weight, const Values<Number>& bias);
/// Gradients flow through the statistics, which are those of x.
template <typename Number>
NormGradients<Number> group_norm_back(const Map<Number>& x, const Map<Number>& dy, int64_t groups,
                                      const Statistics& statistics, const Values<Number>& weight);

}  // namespace fedsmooth::reference
