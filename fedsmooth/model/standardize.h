// Weight standardisation (Qiao et al. 2019), scaled as in FedWSQ (ICCV 2025): a convolution that
// standardises uses, in place of each filter w of n = C k k values,
//
//     v = (w - mean(w)) / sqrt(n var(w) + epsilon),
//
// with the biased variance: v has mean 0 and length 1, up to epsilon. The model holds w, and
// training moves w.
#pragma once

#include <cstdint>

namespace fedsmooth {

inline constexpr double kStandardizeEpsilon = 1e-5;

/// Places of the values of filters: value i of filter k is at k * filter_stride + i * value_stride.
struct FilterLayout {
  int64_t filters, values;
  int64_t filter_stride, value_stride;
};

/// Writes the standardised filters of w to v, in the layout of w. Sums are in double. v may be w.
void standardize(const FilterLayout& layout, const float* w, float* v);

/// Replaces the gradient with respect to v by that with respect to w:
/// (g - mean(g) - v sum(g v)) / sqrt(n var(w) + epsilon).
void standardize_gradient(const FilterLayout& layout, const float* w, float* gradient);

}  // namespace fedsmooth
