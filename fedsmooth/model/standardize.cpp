#include "fedsmooth/model/standardize.h"

#include <cmath>

namespace fedsmooth {
namespace {

// A filter's mean, and the factor 1 / sqrt(n var + epsilon).
struct FilterScale {
  double mean = 0, factor = 0;
};

FilterScale scale_of(const FilterLayout& layout, const float* filter) {
  const int64_t end = layout.values * layout.value_stride;
  FilterScale scale;
  for (int64_t i = 0; i < end; i += layout.value_stride) scale.mean += filter[i];
  scale.mean /= static_cast<double>(layout.values);
  double squares = 0;
  for (int64_t i = 0; i < end; i += layout.value_stride) {
    squares += (filter[i] - scale.mean) * (filter[i] - scale.mean);
  }
  scale.factor = 1 / std::sqrt(squares + kStandardizeEpsilon);
  return scale;
}

}  // namespace

void standardize(const FilterLayout& layout, const float* w, float* v) {
  const int64_t end = layout.values * layout.value_stride;
  for (int64_t k = 0; k < layout.filters; ++k) {
    const int64_t first = k * layout.filter_stride;
    const auto [mean, factor] = scale_of(layout, w + first);
    for (int64_t i = first; i < first + end; i += layout.value_stride) {
      v[i] = static_cast<float>((w[i] - mean) * factor);
    }
  }
}

void standardize_gradient(const FilterLayout& layout, const float* w, float* gradient) {
  const int64_t end = layout.values * layout.value_stride;
  for (int64_t k = 0; k < layout.filters; ++k) {
    const int64_t first = k * layout.filter_stride;
    const auto [mean, factor] = scale_of(layout, w + first);
    double sum = 0, product = 0;
    for (int64_t i = first; i < first + end; i += layout.value_stride) {
      sum += gradient[i];
      product += gradient[i] * (w[i] - mean) * factor;
    }
    const double shift = sum / static_cast<double>(layout.values);
    for (int64_t i = first; i < first + end; i += layout.value_stride) {
      const double v = (w[i] - mean) * factor;
      gradient[i] = static_cast<float>((gradient[i] - shift - v * product) * factor);
    }
  }
}

}  // namespace fedsmooth
