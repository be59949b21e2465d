// Normalisation by constants, by a batch's statistics and by those of an image's groups of
// channels, forwards and backwards.
#pragma once

#include <vector>

#include "fedsmooth/engine/reference/map.h"

namespace fedsmooth::reference {

/// y = (x - mean) / sd per channel; dx = dy / sd.
template <typename Number>
Map<Number> normalize(const Layer& layer, const Map<Number>& x);
template <typename Number>
Map<Number> normalize_back(const Layer& layer, const Map<Number>& dy);

/// Mean and 1 / sqrt(variance + 1e-5) of each channel, or of each image's groups of channels.
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
struct NormGradients {
  Map<Number> x;
  Values<Number> weight, bias;
};
/// `of_batch`: the statistics are those of x itself, and gradients flow through them.
template <typename Number>
NormGradients<Number> batch_norm_back(const Map<Number>& x, const Map<Number>& dy,
                                      const Statistics& statistics, const Values<Number>& weight,
                                      bool of_batch);

/// Those of each image and group, [B, groups], with the biased variance.
template <typename Number>
Statistics group_statistics(const Map<Number>& x, int64_t groups);

/// y = weight (x - mean) scale + bias, the statistics of each image and group, the rest per
/// channel.
template <typename Number>
Map<Number> group_norm(const Map<Number>& x, int64_t groups, const Statistics& statistics,
                       const Values<Number>& weight, const Values<Number>& bias);
/// Gradients flow through the statistics.
template <typename Number>
NormGradients<Number> group_norm_back(const Map<Number>& x, const Map<Number>& dy, int64_t groups,
                                      const Statistics& statistics, const Values<Number>& weight);

}  // namespace fedsmooth::reference
