#include "fedsmooth/base/matrix_product.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fedsmooth/base/check.h"
#include "tests/arrays.h"

namespace fedsmooth {
namespace {

constexpr Instructions kAll[] = {Instructions::kPortable, Instructions::kAvx2,
                                 Instructions::kAvx512};

// A matrix somewhere in an array.
struct View {
  const float* values;
  int64_t rows, columns, row, column;  // sizes, and distances between them

  explicit View(const Array& matrix)
      : View(matrix.floats(), matrix.size(0), matrix.size(1), matrix.size(1), 1) {}
  View(const float* at, int64_t height, int64_t width, int64_t down, int64_t right)
      : values(at), rows(height), columns(width), row(down), column(right) {}

  float operator()(int64_t r, int64_t c) const { return values[r * row + c * column]; }
};

// left * right, or sum + left * right. The rows of `right` are dense.
Array multiply(const View& left, const View& right, Instructions instructions,
               const Array& sum = {}) {
  Array out = sum.defined() ? sum.clone() : Array::full({left.rows, right.columns}, NAN);
  multiply({left.rows, left.columns, right.columns, left.values, left.row, left.column,
            right.values, right.row, out.floats(), out.size(1), sum.defined()},
           instructions);
  return out;
}

// The same in double, which is exact for whole numbers of this size.
Array plain_product(const View& left, const View& right, const Array& sum = {}) {
  Array out({left.rows, right.columns});
  for (int64_t r = 0; r < left.rows; ++r) {
    for (int64_t c = 0; c < right.columns; ++c) {
      double total = sum.defined() ? sum[r].floats()[c] : 0;
      for (int64_t d = 0; d < left.columns; ++d) total += double{left(r, d)} * right(d, c);
      out[r].floats()[c] = static_cast<float>(total);
    }
  }
  return out;
}

Array normals(int64_t rows, int64_t columns, uint64_t seed) {
  Array out({rows, columns});
  fill_normal({make_key(seed, Purpose::kProbe)}, 0, out.floats(), out.count());
  return out;
}

Array whole_numbers(int64_t rows, int64_t columns, uint64_t seed) {
  return each(normals(rows, columns, seed), [](float v) { return std::round(5 * v); });
}

TEST(MatrixProductTest, IsExactForWholeNumbers) {
  for (const Instructions instructions : kAll) {
    if (instructions > best_instructions()) continue;
    for (const int64_t width : {16, 32, 64, 112}) {
      for (const int64_t rows : {1, 5, 8, 19}) {
        const Array x = whole_numbers(rows, 23, 1), panel = whole_numbers(23, width, 2);
        EXPECT_EQ(values_of(multiply(View(x), View(panel), instructions)),
                  values_of(plain_product(View(x), View(panel))))
            << rows << " rows, " << width << " columns";
      }
    }
  }
}

TEST(MatrixProductTest, ReadsAnyStridesAndAddsUp) {
  const Array at_left = whole_numbers(23, 40, 1), at_right = whole_numbers(23, 200, 2);
  const View left(at_left.floats(), 20, 23, 2, 40);  // every other column of it, as a row
  const View right(at_right.floats() + 8, 23, 112, 200, 1);
  const Array sum = whole_numbers(20, 112, 3);
  for (const Instructions instructions : kAll) {
    if (instructions > best_instructions()) continue;
    EXPECT_EQ(values_of(multiply(left, right, instructions, sum)),
              values_of(plain_product(left, right, sum)));
  }
}

TEST(MatrixProductTest, RowsDoNotDependOnTheirPosition) {
  const Array x = normals(29, 100, 1), panel = normals(100, 32, 2);
  for (const Instructions instructions : kAll) {
    if (instructions > best_instructions()) continue;
    const Array all = multiply(View(x), View(panel), instructions);
    for (int64_t r = 0; r < x.size(0); ++r) {
      EXPECT_TRUE(
          same_bits(multiply(View(x.part(r, 1)), View(panel), instructions), all.part(r, 1)));
    }
  }
}

TEST(MatrixProductTest, AllFusedProductsAgree) {
  if (best_instructions() < Instructions::kAvx512) GTEST_SKIP() << "no AVX-512";
  const Array x = normals(29, 100, 1), panel = normals(100, 32, 2);
  EXPECT_TRUE(same_bits(multiply(View(x), View(panel), Instructions::kAvx2),
                        multiply(View(x), View(panel), Instructions::kAvx512)));
}

TEST(MatrixProductTest, PacksColumnsIntoPanels) {
  Array matrices({2, 3, 64});
  for (int64_t i = 0; i < matrices.count(); ++i) matrices.floats()[i] = static_cast<float>(i);
  const Array panels = pack_panels(matrices);
  EXPECT_EQ(panels.sizes(), (Sizes{2, 2, 3, 32}));
  for (int64_t r = 0; r < 3; ++r) {
    for (int64_t c = 0; c < 32; ++c) {
      EXPECT_EQ(panels[1][0][r].floats()[c], matrices[0][r].floats()[32 + c]);
    }
  }
  EXPECT_EQ(panel_width(48), 16);
  EXPECT_THROW(panel_width(20), Bug);
}

}  // namespace
}  // namespace fedsmooth
