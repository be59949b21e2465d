#include "fedsmooth/federated/objectives/example_rows.h"

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/softmax.h"

namespace fedsmooth {

Array interleave(const Array& first, const Array& second, int64_t images) {
  const int64_t a = first.count() / images, b = second.count() / images;
  Array rows({first.size(0) + second.size(0), first.size(1), first.size(2), first.size(3)});
  float* out = rows.floats();
  for (int64_t j = 0; j < images; ++j) {
    out = std::copy_n(first.floats() + j * a, a, out);
    out = std::copy_n(second.floats() + j * b, b, out);
  }
  return rows;
}

void subtract_target(Array& gradient, const Array& logits, int64_t row, const float* q) {
  const int64_t classes = logits.size(1);
  const std::vector<double> p = softmax(logits.floats() + row * classes, classes);
  for (int64_t k = 0; k < classes; ++k) {
    gradient.floats()[row * classes + k] = static_cast<float>(p[k] - q[k]);
  }
}

void step_by_unit(float* row, const float* g, int64_t size, double step) {
  double squares = 0;
  for (int64_t j = 0; j < size; ++j) squares += double{g[j]} * double{g[j]};
  const auto factor = static_cast<float>(step / std::max(std::sqrt(squares), 1e-30));
  for (int64_t j = 0; j < size; ++j) row[j] += factor * g[j];
}

int64_t answer(const Array& logits, int64_t row) {
  const float* z = logits.floats() + row * logits.size(1);
  return std::max_element(z, z + logits.size(1)) - z;
}

}  // namespace fedsmooth
