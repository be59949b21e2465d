#include "fedsmooth/engine/cpu/lane_schemes.h"

#include "fedsmooth/base/matrix_product.h"

namespace fedsmooth {

void transform(const SchemeMatrix& matrix, bool transposed, const float* x, int64_t size,
               std::vector<float>& scratch, float* out) {
  const int64_t n = transposed ? matrix.rows : matrix.columns;
  const int64_t rows = transposed ? matrix.columns : matrix.rows;
  const int64_t row = transposed ? 1 : matrix.columns, column = transposed ? matrix.columns : 1;
  float* half = reserve(scratch, rows * n * size);
  const float* left = matrix.values.data();
  multiply({rows, n, n * size, left, row, column, x, n * size, half, n * size});
  for (int64_t r = 0; r < rows; ++r) {
    multiply(
        {rows, n, size, left, row, column, half + r * n * size, size, out + r * rows * size, size});
  }
}

}  // namespace fedsmooth
