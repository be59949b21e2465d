#include "fedsmooth/base/matrix_product.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "fedsmooth/base/random.h"

namespace fedsmooth {
namespace {

constexpr Instructions kAll[] = {Instructions::kPortable, Instructions::kAvx2,
                                 Instructions::kAvx512};

// left * right, or sum + left * right. The rows of `right` are dense.
Tensor multiply(const Tensor& left, const Tensor& right, Instructions instructions,
                const Tensor& sum = {}) {
  Tensor out = sum.defined() ? sum.clone() : at::empty({left.size(0), right.size(1)});
  multiply({left.size(0), left.size(1), right.size(1), left.data_ptr<float>(), left.stride(0),
            left.stride(1), right.data_ptr<float>(), right.stride(0), out.data_ptr<float>(),
            out.stride(0), sum.defined()},
           instructions);
  return out;
}

Tensor normals(int64_t rows, int64_t columns, uint64_t seed) {
  Tensor out = at::empty({rows, columns});
  fill_normal({make_key(seed, Purpose::kProbe)}, 0, out.data_ptr<float>(), out.numel());
  return out;
}

TEST(MatrixProductTest, IsExactForWholeNumbers) {
  for (const Instructions instructions : kAll) {
    if (instructions > best_instructions()) continue;
    for (const int64_t width : {16, 32, 64, 112}) {
      for (const int64_t rows : {1, 5, 8, 19}) {
        const Tensor x = normals(rows, 23, 1).mul_(5).round_();
        const Tensor panel = normals(23, width, 2).mul_(5).round_();
        EXPECT_TRUE(at::equal(multiply(x, panel, instructions), x.mm(panel)))
            << rows << " rows, " << width << " columns";
      }
    }
  }
}

TEST(MatrixProductTest, ReadsAnyStridesAndAddsUp) {
  for (const Instructions instructions : kAll) {
    if (instructions > best_instructions()) continue;
    const Tensor left = normals(23, 40, 1).mul_(5).round_().t().slice(0, 0, 40, 2);  // [20, 23]
    const Tensor right = normals(23, 200, 2).mul_(5).round_().slice(1, 8, 8 + 112);
    const Tensor sum = normals(20, 112, 3).round_();
    EXPECT_TRUE(at::equal(multiply(left, right, instructions, sum), sum + left.mm(right)));
  }
}

TEST(MatrixProductTest, RowsDoNotDependOnTheirPosition) {
  const Tensor x = normals(29, 100, 1), panel = normals(100, 32, 2);
  for (const Instructions instructions : kAll) {
    if (instructions > best_instructions()) continue;
    const Tensor all = multiply(x, panel, instructions);
    for (int64_t r = 0; r < x.size(0); ++r) {
      EXPECT_TRUE(at::equal(multiply(x[r].unsqueeze(0), panel, instructions)[0], all[r]));
    }
  }
}

TEST(MatrixProductTest, AllFusedProductsAgree) {
  if (best_instructions() < Instructions::kAvx512) GTEST_SKIP() << "no AVX-512";
  const Tensor x = normals(29, 100, 1), panel = normals(100, 32, 2);
  EXPECT_TRUE(at::equal(multiply(x, panel, Instructions::kAvx2),
                        multiply(x, panel, Instructions::kAvx512)));
}

TEST(MatrixProductTest, PacksColumnsIntoPanels) {
  const Tensor matrices = at::arange(2 * 3 * 64, at::kFloat).view({2, 3, 64});
  const Tensor panels = pack_panels(matrices);
  EXPECT_EQ(panels.sizes(), (std::vector<int64_t>{2, 2, 3, 32}));
  EXPECT_TRUE(at::equal(panels[1][0], matrices[0].slice(1, 32, 64)));
  EXPECT_EQ(panel_width(48), 16);
  EXPECT_ANY_THROW(panel_width(20));
}

}  // namespace
}  // namespace fedsmooth
