// Class probabilities from logits, in double: rows are short, and every gradient inherits the
// rounding errors made here.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace fedsmooth {

/// Returns exp(logits_k) / sum_j exp(logits_j) for one row of `classes` logits.
inline std::vector<double> softmax(const float* logits, int64_t classes) {
  const double largest = *std::max_element(logits, logits + classes);
  std::vector<double> p(classes);
  double sum = 0;
  for (int64_t k = 0; k < classes; ++k) sum += p[k] = std::exp(logits[k] - largest);
  for (double& value : p) value /= sum;
  return p;
}

}  // namespace fedsmooth
