// Each layer's product and its two gradients on the GPU against sums in double on the CPU.
#ifdef FEDSMOOTH_CUDA

#include "fedsmooth/engine/batched_product.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <numeric>

#include "fedsmooth/engine/batched_weights.h"
#include "fedsmooth/engine/device_plan.h"
#include "fedsmooth/engine/pair_groups.h"
#include "tests/engine/networks.h"

namespace fedsmooth {
namespace {

constexpr int kClients = 3;
constexpr double kRounding = 1.0 / (1 << 23);

// How products are computed.
struct Path {
  std::string name;
  Precision precision;
  bool best;  // this GPU's own tiling instead of the portable one

  at::ScalarType type() const {
    return precision == Precision::kBfloat16 ? at::kBFloat16 : at::kFloat;
  }
  double rounding() const { return precision == Precision::kBfloat16 ? 1.0 / (1 << 8) : kRounding; }
  Tiling tiling(Side side, const PairLists& lists) const {
    const auto results = static_cast<int>(lists.size());
    int pairs = 0;
    for (const auto& list : lists) pairs += static_cast<int>(list.size());
    return best ? choose_tiling(side, results, pairs) : portable_tiling(side, results);
  }
};

struct Case {
  std::string network;
  int rows;
  Path path;
};

// Odd sizes, strides, a layer wider than a tile, a linear one on a large map.
Network odd_network() {
  using Kind = Layer::Kind;
  Layer normalize{Kind::kNormalize};
  normalize.mean = {0.5, 0.1};
  normalize.sd = {0.5, 0.3};
  return {"odd",
          {2, 13, 10},
          {normalize, layer(Kind::kConv, "a", 7, 5, 3, 1), layer(Kind::kRelu, ""),
           layer(Kind::kConv, "b", 70, 3, 1, 2), layer(Kind::kConv, "c", 20, 3, 2, 1),
           layer(Kind::kLinear, "d", 6)}};
}

class DeviceTensor {
 public:
  explicit DeviceTensor(const Tensor& values)
      : like_(values.contiguous()), bytes_(static_cast<int64_t>(values.nbytes())) {
    bytes_.upload(static_cast<const uint8_t*>(like_.data_ptr()), bytes_.size(), nullptr);
  }
  void* data() const { return bytes_.data(); }
  float* floats() const { return reinterpret_cast<float*>(bytes_.data()); }
  Tensor read() const {
    const Tensor values = at::empty_like(like_);
    bytes_.download(static_cast<uint8_t*>(values.data_ptr()), nullptr);
    return values.to(at::kDouble);
  }

 private:
  Tensor like_;
  DeviceArray<uint8_t> bytes_;
};

// A sum and what its rounding may amount to: errors add up like a walk of as many steps as terms.
struct Sum {
  Tensor value, error;
};

class BatchedProductTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
      GTEST_SKIP() << "no CUDA device";
    }
  }

  // Normal values as the path holds them.
  Tensor draw(const std::vector<int64_t>& sizes, uint64_t key) const {
    Tensor values = at::empty(sizes);
    fill_normal({Key{key}}, 0, values.data_ptr<float>(), values.numel());
    return values.to(GetParam().path.type());
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

// A stage's product of maps, but for where things lie.
MapProduct product_of(const BatchedStage& stage, bool gradient, int rows) {
  MapProduct p;
  p.gradient = gradient;
  p.clients = kClients;
  p.rows = rows;
  p.depth = gradient ? stage.out.channels : stage.in.channels;
  p.columns = gradient ? stage.in.channels : stage.out.channels;
  p.left_pixels = gradient ? stage.out.pixels() : stage.in.pixels();
  p.taps = stage.taps;
  p.kernel_client = int64_t{stage.taps} * p.depth * p.columns;
  p.relu = !gradient && stage.relu;
  return p;
}

BatchedPlan plan_of(const std::string& network) {
  return BatchedPlan(network == "odd" ? odd_network() : named_network(network));
}

std::vector<int> squares(const BatchedMap& map) { return order_by_squares(map.height, map.width); }

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
    MapProduct p = product_of(stage, false, rows);
    p.left = left.data();
    p.kernel = kernel.data();
    p.pairs = pairs.view();
    p.out = out.data();
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
    MapProduct p = product_of(stage, true, rows);
    p.left = left.data();
    p.kernel = kernel.data();
    p.pairs = pairs.view();
    p.out = out.data();
    p.mask = masks.data();
    check_cuda(multiply_maps(path.precision, p, nullptr), "multiply_maps");
    expect_near(out.read(), expected, path.rounding(), "gradient");
  }
}

// Maps whose squares are pooled on their way out, and back: to the bit what the map itself gives.
TEST_P(BatchedProductTest, MaximaOverSquares) {
  const auto& [name, rows, path] = GetParam();
  const BatchedPlan plan = plan_of(name);
  for (size_t i = 0; i + 1 < plan.stages.size(); ++i) {
    const BatchedStage& stage = plan.stages[i];
    const Tiling tiling = path.tiling(Side::kForward, stage.by_output);
    if (!plan.stages[i + 1].squares || !tiling.hopper) continue;
    const int64_t c = stage.in.channels, k = stage.out.channels;
    const int64_t height = stage.out.height, width = stage.out.width;
    const PairTable pairs(stage.by_output, squares(stage.out), tiling);
    const DeviceTensor left(draw({kClients, stage.in.pixels(), rows, c}, 1));
    const DeviceTensor kernel(draw({kClients, stage.taps, c, k}, 2));
    const DeviceTensor map(at::zeros({kClients, height * width, rows, k}, path.type()));
    const DeviceTensor maxima(at::zeros({kClients, height * width / 4, rows, k}, path.type()));
    const DeviceTensor choice(at::zeros({kClients, height * width / 4, rows, k}, at::kByte));
    MapProduct p = product_of(stage, false, rows);
    p.left = left.data();
    p.kernel = kernel.data();
    p.pairs = pairs.view();
    p.out = map.data();
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
TEST_P(BatchedProductTest, GradientOverSquares) {
  const auto& [name, rows, path] = GetParam();
  const BatchedPlan plan = plan_of(name);
  for (size_t i = 1; i < plan.stages.size(); ++i) {
    const BatchedStage& stage = plan.stages[i];
    const Tiling tiling = path.tiling(Side::kMapGradient, stage.by_input);
    if (stage.is_pool || !plan.stages[i - 1].squares || !tiling.hopper) continue;
    const int64_t c = stage.in.channels, k = stage.out.channels;
    const int64_t height = stage.in.height, width = stage.in.width;
    const PairTable pairs(stage.by_input, squares(stage.in), tiling);
    const DeviceTensor left(draw({kClients, stage.out.pixels(), rows, k}, 1));
    const DeviceTensor kernel(draw({kClients, stage.taps, c, k}, 2));
    const std::vector<int64_t> sizes = {kClients, height * width, rows, c};
    const Tensor chosen = at::arange(kClients * height * width * rows * c).remainder(5);
    const DeviceTensor choice(chosen.view(sizes).to(at::kByte));
    const DeviceTensor plain(at::zeros(sizes, path.type()));
    const DeviceTensor spread(at::zeros({kClients, 4 * height * width, rows, c}, path.type()));
    MapProduct p = product_of(stage, true, rows);
    p.left = left.data();
    p.kernel = kernel.data();
    p.pairs = pairs.view();
    p.out = plain.data();
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

const Path kFloat{"Float32", Precision::kFloat32, false};
const Path kPortable{"Portable", Precision::kBfloat16, false};
const Path kBest{"Best", Precision::kBfloat16, true};

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

#endif
