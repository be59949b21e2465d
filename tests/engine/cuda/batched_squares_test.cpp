// Products of maps that pool squares of pixels themselves, as Hopper's do.
#ifdef FEDSMOOTH_CUDA

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/engine/cuda/products.h"

namespace fedsmooth {
namespace {

class BatchedSquaresTest : public GpuTest, public testing::WithParamInterface<int> {};

// Maps whose squares are pooled on their way out, and back: to the bit what the map itself gives.
TEST_P(BatchedSquaresTest, MaximaOverSquares) {
  const int rows = GetParam();
  const Path& path = kBest;
  const BatchedPlan plan = plan_of("alexnet");
  for (size_t i = 0; i + 1 < plan.stages.size(); ++i) {
    const BatchedStage& stage = plan.stages[i];
    const Tiling tiling = path.tiling(Side::kForward, stage.by_output);
    if (!plan.stages[i + 1].squares || !tiling.hopper) continue;
    const int64_t c = stage.in.channels, k = stage.out.channels;
    const int64_t height = stage.out.height, width = stage.out.width;
    const PairTable pairs(stage.by_output, squares(stage.out), tiling);
    const DeviceTensor left(draw_normal({kClients, stage.in.pixels(), rows, c}, 1, path));
    const DeviceTensor kernel(draw_normal({kClients, stage.taps, c, k}, 2, path));
    const DeviceTensor map(at::zeros({kClients, height * width, rows, k}, path.type()));
    const DeviceTensor maxima(at::zeros({kClients, height * width / 4, rows, k}, path.type()));
    const DeviceTensor choice(at::zeros({kClients, height * width / 4, rows, k}, at::kByte));
    MapProduct p = product_of(stage, false, rows, left, kernel, pairs, map);
    check_cuda(multiply_maps(path.precision, p, nullptr), "multiply_maps");
    p.out = maxima.data();
    p.squares = stage.out.width / 2;
    p.choice = static_cast<uint8_t*>(choice.data());
    check_cuda(multiply_maps(path.precision, p, nullptr), "multiply_maps");

    // [client, y, x, row, channel, pixel of the square]
    const Tensor four = map.read()
                            .view({kClients, height / 2, 2, width / 2, 2, rows, k})
                            .permute({0, 1, 3, 5, 6, 2, 4})
                            .reshape({kClients, height * width / 4, rows, k, 4});
    const auto [largest, first] = four.max(-1);
    EXPECT_TRUE(largest.equal(maxima.read()));
    const Tensor chosen = choice.read().to(at::kLong);
    const Tensor passes = chosen != kNoChoice;
    EXPECT_TRUE(passes.equal(stage.relu ? largest > 0 : at::ones_like(passes)));
    const Tensor of_chosen = four.gather(-1, chosen.clamp_max(3).unsqueeze(-1)).squeeze(-1);
    EXPECT_TRUE(of_chosen.masked_select(passes).equal(largest.masked_select(passes)));
    // The first of equal ones.
    for (int64_t before = 0; before < 3; ++before) {
      const Tensor later = passes.logical_and(chosen > before);
      EXPECT_FALSE((four.select(-1, before) == largest).logical_and(later).any().item<bool>());
    }
  }
}

// A gradient of maxima, spread over the squares.
TEST_P(BatchedSquaresTest, GradientOverSquares) {
  const int rows = GetParam();
  const Path& path = kBest;
  const BatchedPlan plan = plan_of("alexnet");
  for (size_t i = 1; i < plan.stages.size(); ++i) {
    const BatchedStage& stage = plan.stages[i];
    const Tiling tiling = path.tiling(Side::kMapGradient, stage.by_input);
    if (stage.is_pool || !plan.stages[i - 1].squares || !tiling.hopper) continue;
    const int64_t c = stage.in.channels, k = stage.out.channels;
    const int64_t height = stage.in.height, width = stage.in.width;
    const PairTable pairs(stage.by_input, squares(stage.in), tiling);
    const DeviceTensor left(draw_normal({kClients, stage.out.pixels(), rows, k}, 1, path));
    const DeviceTensor kernel(draw_normal({kClients, stage.taps, c, k}, 2, path));
    const std::vector<int64_t> sizes = {kClients, height * width, rows, c};
    const Tensor chosen = at::arange(kClients * height * width * rows * c).remainder(5);
    const DeviceTensor choice(chosen.view(sizes).to(at::kByte));
    const DeviceTensor plain(at::zeros(sizes, path.type()));
    const DeviceTensor spread(at::zeros({kClients, 4 * height * width, rows, c}, path.type()));
    MapProduct p = product_of(stage, true, rows, left, kernel, pairs, plain);
    check_cuda(multiply_maps(path.precision, p, nullptr), "multiply_maps");
    p.out = spread.data();
    p.squares = stage.in.width;
    p.choice = static_cast<uint8_t*>(choice.data());
    check_cuda(multiply_maps(path.precision, p, nullptr), "multiply_maps");

    const Tensor found = spread.read()
                             .view({kClients, height, 2, width, 2, rows, c})
                             .permute({0, 1, 3, 5, 6, 2, 4})
                             .reshape({kClients, height * width, rows, c, 4});
    for (int64_t pixel = 0; pixel < 4; ++pixel) {
      const Tensor is_chosen = (chosen.view(sizes) == pixel).to(at::kDouble);
      EXPECT_TRUE(found.select(-1, pixel).equal(plain.read() * is_chosen));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, BatchedSquaresTest, testing::Values(64, 128));

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(BatchedSquaresTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
