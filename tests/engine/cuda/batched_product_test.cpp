// Each layer's product and its two gradients on the GPU against sums in double on the CPU.
#ifdef FEDSMOOTH_CUDA

#include "fedsmooth/engine/cuda/kernels/batched_product.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <numeric>

#include "fedsmooth/engine/cuda/kernels/batched_weights.h"
#include "tests/engine/cuda/products.h"

namespace fedsmooth {
namespace {

struct Case {
  std::string network;
  int rows;
  Path path;
};

// A sum and what its rounding may amount to: errors add up like a walk of as many steps as terms.
struct Sum {
  Tensor value, error;
};

class BatchedProductTest : public GpuTest, public testing::WithParamInterface<Case> {
 protected:
  Tensor draw(const std::vector<int64_t>& sizes, uint64_t key) const {
    return draw_normal(sizes, key, GetParam().path);
  }

  // sum of a[i] b[j] for each list, over clients; `a` and `b` are [client, item, ...].
  template <class Multiply>
  static Sum sum_pairs(const PairLists& lists, const Tensor& a, const Tensor& b, int64_t depth,
                       const Multiply& multiply) {
    const Tensor x = a.to(at::kDouble), y = b.to(at::kDouble);
    std::vector<Tensor> values, errors;
    for (const auto& list : lists) {
      // A pixel that no window meets has no pairs.
      Tensor value = multiply(x.select(1, 0) * 0, y.select(1, 0)), size = value;
      for (const Pair& pair : list) {
        const Tensor left = x.select(1, pair.left), right = y.select(1, pair.right);
        value = value + multiply(left, right);
        size = size + multiply(left.abs(), right.abs());
      }
      const double terms = static_cast<double>(list.size()) * static_cast<double>(depth);
      values.push_back(value);
      errors.push_back(size * (8 * std::sqrt(terms) * kRounding));
    }
    return {at::stack(values, 1), at::stack(errors, 1)};
  }

  void expect_near(const Tensor& found, const Sum& expected, double rounding,
                   const std::string& what) const {
    const Tensor off = (found - expected.value).abs();
    const Tensor allowed = expected.error + expected.value.abs() * rounding;
    EXPECT_TRUE((off <= allowed).all().item<bool>())
        << what << ": " << (off / allowed).max().item<double>() << " of what is allowed";
  }
};

TEST_P(BatchedProductTest, Forward) {
  const auto& [name, rows, path] = GetParam();
  const BatchedPlan plan = plan_of(name);
  for (const BatchedStage& stage : plan.stages) {
    if (stage.is_pool) continue;
    const int64_t c = stage.in.channels, k = stage.out.channels;
    const Tensor x = draw({kClients, stage.in.pixels(), rows, c}, 1);
    const Tensor w = draw({kClients, stage.taps, c, k}, 2);
    const Tensor bias = draw({kClients, k}, 3).to(at::kFloat);
    Sum expected = sum_pairs(stage.by_output, x, w, c,
                             [](const Tensor& a, const Tensor& b) { return a.matmul(b); });
    expected.value += bias.to(at::kDouble).view({kClients, 1, 1, k});
    if (stage.relu) expected.value.clamp_min_(0);

    const PairTable pairs(stage.by_output, squares(stage.out),
                          path.tiling(Side::kForward, stage.by_output));
    const DeviceTensor left(x), kernel(w), biases(bias);
    const DeviceTensor out(at::zeros(expected.value.sizes(), path.type()));
    const DeviceTensor out_float(at::zeros(expected.value.sizes(), at::kFloat));
    MapProduct p = product_of(stage, false, rows, left, kernel, pairs, out);
    p.bias = biases.floats();
    p.bias_client = k;
    check_cuda(multiply_maps(path.precision, p, nullptr), "multiply_maps");
    expect_near(out.read(), expected, path.rounding(), "map");
    p.out_float = out_float.floats();
    check_cuda(multiply_maps(path.precision, p, nullptr), "multiply_maps");
    expect_near(out_float.read(), expected, kRounding, "map in float32");
  }
}

TEST_P(BatchedProductTest, MapGradient) {
  const auto& [name, rows, path] = GetParam();
  const BatchedPlan plan = plan_of(name);
  for (const BatchedStage& stage : plan.stages) {
    if (stage.is_pool) continue;
    const int64_t c = stage.in.channels, k = stage.out.channels;
    const Tensor dy = draw({kClients, stage.out.pixels(), rows, k}, 1);
    const Tensor w = draw({kClients, stage.taps, c, k}, 2);
    const Tensor mask = draw({kClients, stage.in.pixels(), rows, c}, 3);
    Sum expected = sum_pairs(stage.by_input, dy, w, k, [](const Tensor& a, const Tensor& b) {
      return a.matmul(b.transpose(1, 2));
    });
    expected.value *= (mask > 0).to(at::kDouble);

    const PairTable pairs(stage.by_input, squares(stage.in),
                          path.tiling(Side::kMapGradient, stage.by_input));
    const DeviceTensor left(dy), kernel(w), masks(mask), out(at::zeros_like(mask));
    MapProduct p = product_of(stage, true, rows, left, kernel, pairs, out);
    p.mask = masks.data();
    check_cuda(multiply_maps(path.precision, p, nullptr), "multiply_maps");
    expect_near(out.read(), expected, path.rounding(), "gradient");
  }
}

TEST_P(BatchedProductTest, WeightGradientAndStep) {
  const auto& [name, rows, path] = GetParam();
  const BatchedPlan plan = plan_of(name);
  for (const BatchedStage& stage : plan.stages) {
    if (stage.is_pool) continue;
    const int64_t c = stage.in.channels, k = stage.out.channels;
    const Tensor x = draw({kClients, stage.in.pixels(), rows, c}, 1);
    const Tensor dy = draw({kClients, stage.out.pixels(), rows, k}, 2);
    const Tensor w = draw({kClients, stage.taps, c, k}, 3).to(at::kFloat);
    const Tensor v = draw({kClients, stage.taps, c, k}, 4).to(at::kFloat);
    std::vector<uint8_t> real(stage.taps * c * k);
    for (size_t i = 0; i < real.size(); ++i) real[i] = i % 7 != 0;
    Sum expected = sum_pairs(stage.by_tap, x, dy, rows, [](const Tensor& a, const Tensor& b) {
      return a.transpose(1, 2).matmul(b);
    });
    std::vector<ClientSettings> settings(kClients);
    for (int i = 0; i < kClients; ++i) {
      settings[i].learning_rate = 0.1f * static_cast<float>(i + 1);
      settings[i].momentum = 0.9f;
      settings[i].weight_decay = 0.01f;
    }

    std::vector<int> taps(stage.taps);
    std::iota(taps.begin(), taps.end(), 0);
    const PairTable pairs(stage.by_tap, taps, path.tiling(Side::kWeightGradient, stage.by_tap));
    const DeviceTensor left(x), right(dy), weights(w), velocity(v);
    const DeviceTensor working(at::zeros(w.sizes(), at::kBFloat16));
    const DeviceArray<uint8_t> reals(real);
    const DeviceArray<ClientSettings> on_device(settings);
    WeightUpdate u;
    u.clients = kClients;
    u.rows = rows;
    u.in_channels = stage.in.channels;
    u.out_channels = stage.out.channels;
    u.in_pixels = stage.in.pixels();
    u.out_pixels = stage.out.pixels();
    u.x = left.data();
    u.dy = right.data();
    u.pairs = pairs.view();
    u.weights = weights.floats();
    u.velocity = velocity.floats();
    u.working = working.data();
    u.client_size = stage.taps * c * k;
    u.real = reals.data();
    u.settings = on_device.data();
    check_cuda(update_kernel(path.precision, u, nullptr), "update_kernel");

    const Tensor is_real = at::tensor(at::ArrayRef<uint8_t>(real)).view({1, stage.taps, c, k});
    const Tensor rates = at::tensor({0.1, 0.2, 0.3}, at::kDouble).view({kClients, 1, 1, 1});
    const Tensor start = w.to(at::kDouble);
    expected.value = 0.9 * v.to(at::kDouble) + expected.value * is_real + 0.01 * start;
    expected.error += (v.abs() + w.abs()) * 4 * kRounding;
    expect_near(velocity.read(), expected, kRounding, "momentum");
    const Sum stepped{
        start - rates * expected.value,
        rates * expected.error + (start.abs() + expected.value.abs()) * 4 * kRounding};
    expect_near(weights.read(), stepped, kRounding, "weights");
    if (path.precision == Precision::kBfloat16) {
      EXPECT_TRUE(
          weights.read().to(at::kFloat).to(at::kBFloat16).to(at::kDouble).equal(working.read()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layers, BatchedProductTest,
    testing::Values(Case{"odd", 64, kFloat}, Case{"odd", 128, kFloat}, Case{"odd", 64, kPortable},
                    Case{"odd", 128, kPortable}, Case{"odd", 64, kBest}, Case{"odd", 128, kBest},
                    Case{"small", 64, kPortable}, Case{"small", 64, kBest},
                    Case{"alexnet", 64, kFloat}, Case{"alexnet", 64, kPortable},
                    Case{"alexnet", 64, kBest}),
    [](const auto& info) {
      return info.param.network + info.param.path.name + std::to_string(info.param.rows);
    });

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(BatchedProductTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
