// The schemes of toeplitz_schemes.h as matrices, for maps [H, W, C, lanes] and kernels [k, k, C,
// K].
#pragma once

#include <cstdint>
#include <vector>

#include "fedsmooth/engine/cpu/toeplitz_schemes.h"

namespace fedsmooth {

/// Row by row.
struct SchemeMatrix {
  int64_t rows, columns;
  std::vector<float> values;
};

template <size_t kRows, size_t kColumns>
SchemeMatrix to_matrix(const Entries<kRows, kColumns>& entries) {
  SchemeMatrix matrix{kRows, kColumns, {}};
  for (const auto& row : entries) matrix.values.insert(matrix.values.end(), row.begin(), row.end());
  return matrix;
}

struct SchemeMatrices {
  int64_t n, products;  // along an axis
  SchemeMatrix kernel, inputs, outputs;
};

template <class S>
SchemeMatrices matrices_of() {
  return {S::kSize.outputs, S::kSize.products, to_matrix(S::kKernel), to_matrix(S::kInputs),
          to_matrix(S::kOutputs)};
}

/// At least `size` floats.
inline float* reserve(std::vector<float>& buffer, int64_t size) {
  if (std::ssize(buffer) < size) buffer.resize(size);
  return buffer.data();
}

/// out [R, R, size] = matrix x matrix^T along both axes of x [n, n, size]; or by the transposed
/// matrix. `size` is a multiple of 16. `scratch` holds [R, n, size].
void transform(const SchemeMatrix& matrix, bool transposed, const float* x, int64_t size,
               std::vector<float>& scratch, float* out);

}  // namespace fedsmooth
