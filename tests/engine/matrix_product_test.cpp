#include "fedsmooth/engine/matrix_product.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "fedsmooth/base/random.h"

namespace fedsmooth {
namespace {

constexpr Instructions kAll[] = {Instructions::kPortable, Instructions::kAvx2,
                                 Instructions::kAvx512};

Tensor multiply(const Tensor& x, const Tensor& panel, Instructions instructions) {
  Tensor out = at::empty({x.size(0), panel.size(1)});
  multiply_panel(x.data_ptr<float>(), x.size(0), x.size(1), panel.data_ptr<float>(), panel.size(1),
                 out.data_ptr<float>(), instructions);
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
    for (const int64_t width : {16, 32}) {
      for (const int64_t rows : {1, 5, 8, 19}) {
        const Tensor x = normals(rows, 23, 1).mul_(5).round_();
        const Tensor panel = normals(23, width, 2).mul_(5).round_();
        EXPECT_TRUE(at::equal(multiply(x, panel, instructions), x.mm(panel)))
            << rows << " rows, " << width << " columns";
      }
    }
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
