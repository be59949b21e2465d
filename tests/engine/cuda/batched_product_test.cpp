// Each layer's product and its two gradients on the GPU against sums in double on the CPU.
#ifdef FEDSMOOTH_CUDA

#include "fedsmooth/engine/cuda/kernels/pairs/batched_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fedsmooth/engine/cuda/kernels/pairs/batched_weights.h"
#include "tests/engine/cuda/products.h"

namespace fedsmooth {
namespace {

struct Case {
  std::string network;
  int rows;
  Path path;
};

// Sums and what their rounding may amount to: errors add up like a walk of as many steps as terms.
struct Sums {
  std::vector<double> values, errors;
};

// The sum of a[i] b[j] for each list, over clients.
Sums sum_pairs(const PairLists& lists, const Matrices& a, const Matrices& b) {
  Sums sums;
  for (int client = 0; client < kClients; ++client) {
    for (const std::vector<Pair>& list : lists) {
      std::vector<double> value(a.rows * b.columns), size(value.size());
      for (const Pair& pair : list) {
        const double *left = a.of(client, pair.left), *right = b.of(client, pair.right);
        for (int64_t r = 0; r < a.rows; ++r) {
          for (int64_t d = 0; d < a.columns; ++d) {
            const double factor = left[r * a.columns + d];
            for (int64_t c = 0; c < b.columns; ++c) {
              const double term = factor * right[d * b.columns + c];
              value[r * b.columns + c] += term;
              size[r * b.columns + c] += std::abs(term);
            }
          }
        }
      }
      const double terms = static_cast<double>(list.size()) * static_cast<double>(a.columns);
      sums.values.insert(sums.values.end(), value.begin(), value.end());
      for (const double s : size) sums.errors.push_back(s * (8 * std::sqrt(terms) * kRounding));
    }
  }
  return sums;
}

void expect_near(const std::vector<double>& found, const Sums& expected, double rounding,
                 const std::string& what) {
  ASSERT_EQ(found.size(), expected.values.size()) << what;
  int64_t beyond = 0;
  double worst = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const double off = std::abs(found[i] - expected.values[i]);
    const double allowed = expected.errors[i] + std::abs(expected.values[i]) * rounding;
    beyond += !(off <= allowed);  // so is NaN
    worst = std::max(worst, off / allowed);
  }
  EXPECT_EQ(beyond, 0) << what << ": up to " << worst << " of what is allowed";
}

class BatchedProductTest : public GpuTest, public testing::WithParamInterface<Case> {
 protected:
  Matrices draw(int64_t items, int64_t rows, int64_t columns, uint64_t key) const {
    return draw_normal(items, rows, columns, key, GetParam().path);
  }
};

TEST_P(BatchedProductTest, Forward) {
  const auto& [name, rows, path] = GetParam();
  const std::vector<Product> products = products_of(name);
  for (const Product& stage : products) {
    const int64_t c = stage.in.channels, k = stage.out.channels;
    const Matrices x = draw(stage.in.pixels(), rows, c, 1), w = draw(stage.taps, c, k, 2);
    const Matrices bias = draw(1, 1, k, 3);
    Sums expected = sum_pairs(stage.by_output, x, w);
    const int64_t client_size = stage.out.pixels() * rows * k;
    for (int64_t i = 0; i < std::ssize(expected.values); ++i) {
      expected.values[i] += bias.of(i / client_size, 0)[i % k];
      if (stage.relu) expected.values[i] = std::max(expected.values[i], 0.0);
    }

    const PairTable pairs(stage.by_output, squares(stage.out),
                          path.tiling(Side::kForward, stage.by_output));
    const DeviceValues left(x.values, path.type()), kernel(w.values, path.type());
    const DeviceValues biases(bias.values, NumberType::kFloat);
    const DeviceValues out = DeviceValues::zeros(kClients * client_size, path.type());
    const DeviceValues out_float = DeviceValues::zeros(kClients * client_size, NumberType::kFloat);
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
  const std::vector<Product> products = products_of(name);
  for (const Product& stage : products) {
    const int64_t c = stage.in.channels, k = stage.out.channels;
    const Matrices dy = draw(stage.out.pixels(), rows, k, 1), w = draw(stage.taps, c, k, 2);
    const Matrices mask = draw(stage.in.pixels(), rows, c, 3);
    Sums expected = sum_pairs(stage.by_input, dy, w.transposed());
    for (size_t i = 0; i < mask.values.size(); ++i) expected.values[i] *= mask.values[i] > 0;

    const PairTable pairs(stage.by_input, squares(stage.in),
                          path.tiling(Side::kMapGradient, stage.by_input));
    const DeviceValues left(dy.values, path.type()), kernel(w.values, path.type());
    const DeviceValues masks(mask.values, path.type());
    const DeviceValues out = DeviceValues::zeros(std::ssize(mask.values), path.type());
    MapProduct p = product_of(stage, true, rows, left, kernel, pairs, out);
    p.mask = masks.data();
    check_cuda(multiply_maps(path.precision, p, nullptr), "multiply_maps");
    expect_near(out.read(), expected, path.rounding(), "gradient");
  }
}

TEST_P(BatchedProductTest, WeightGradientAndStep) {
  const auto& [name, rows, path] = GetParam();
  const std::vector<Product> products = products_of(name);
  for (const Product& stage : products) {
    const int64_t c = stage.in.channels, k = stage.out.channels;
    const Matrices x = draw(stage.in.pixels(), rows, c, 1);
    const Matrices dy = draw(stage.out.pixels(), rows, k, 2);
    const Matrices w = draw(stage.taps, c, k, 3), v = draw(stage.taps, c, k, 4);
    std::vector<uint8_t> real(stage.taps * c * k);
    for (size_t i = 0; i < real.size(); ++i) real[i] = i % 7 != 0;
    Sums expected = sum_pairs(stage.by_tap, x.transposed(), dy);
    std::vector<ClientSettings> settings(kClients);
    for (int i = 0; i < kClients; ++i) {
      settings[i].learning_rate = 0.1f * static_cast<float>(i + 1);
      settings[i].momentum = 0.9f;
      settings[i].weight_decay = 0.01f;
    }

    std::vector<int> taps(stage.taps);
    std::iota(taps.begin(), taps.end(), 0);
    const PairTable pairs(stage.by_tap, taps, path.tiling(Side::kWeightGradient, stage.by_tap));
    const DeviceValues left(x.values, path.type()), right(dy.values, path.type());
    const DeviceValues weights(w.values, NumberType::kFloat),
        velocity(v.values, NumberType::kFloat);
    const DeviceValues working = DeviceValues::zeros(std::ssize(w.values), NumberType::kBfloat16);
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
    check_cuda(update_weights(path.precision, u, nullptr), "update_kernel");

    Sums stepped = expected;
    for (size_t i = 0; i < w.values.size(); ++i) {
      const double start = w.values[i], before = v.values[i];
      double &value = expected.values[i], &error = expected.errors[i];
      value = 0.9 * before + value * real[i % real.size()] + 0.01 * start;
      error += (std::abs(before) + std::abs(start)) * 4 * kRounding;
      const double rate = 0.1 * static_cast<double>(i / real.size() + 1);
      stepped.values[i] = start - rate * value;
      stepped.errors[i] = rate * error + (std::abs(start) + std::abs(value)) * 4 * kRounding;
    }
    expect_near(velocity.read(), expected, kRounding, "momentum");
    expect_near(weights.read(), stepped, kRounding, "weights");
    if (path.precision == Precision::kBfloat16) {
      EXPECT_EQ(DeviceValues(weights.read(), NumberType::kBfloat16).read(), working.read());
    }
  }
}

// A channel's gradient, summed as batched_weights.cu orders it: by parts, then over them.
float sum_of_channel(const Matrices& dy, int client, int64_t channel) {
  const int64_t rows = dy.items * dy.rows, parts = 1024 / (dy.columns / 8);
  float sum = 0;
  for (int64_t part = 0; part < parts; ++part) {
    float of_part = 0;
    for (int64_t r = part; r < rows; r += parts) {
      of_part += static_cast<float>(dy.of(client, 0)[r * dy.columns + channel]);
    }
    sum += of_part;
  }
  return sum;
}

// More layers than a launch takes. Without momentum and decay the velocity is the gradient.
TEST_P(BatchedProductTest, BiasesHaveTheBitsOfTheirOrder) {
  const auto& [name, rows, path] = GetParam();
  const std::vector<Product> products = products_of(name);
  std::vector<Matrices> gradients;
  for (int i = 0; i < 3; ++i) {
    for (const Product& stage : products) {
      gradients.push_back(draw(stage.out.pixels(), rows, stage.out.channels, gradients.size()));
    }
  }
  std::vector<ClientSettings> settings(kClients);
  for (int i = 0; i < kClients; ++i) settings[i].learning_rate = 0.25f * static_cast<float>(i + 1);
  const DeviceArray<ClientSettings> on_device(settings);
  std::vector<DeviceValues> dy, weights, velocity;
  std::vector<BiasUpdate> updates;
  for (const Matrices& gradient : gradients) {
    const std::vector<double> ones(kClients * gradient.columns, 1.0);
    dy.emplace_back(gradient.values, path.type());
    weights.emplace_back(ones, NumberType::kFloat);
    velocity.emplace_back(ones, NumberType::kFloat);
    BiasUpdate& u = updates.emplace_back();
    u.rows = rows;
    u.channels = static_cast<int>(gradient.columns);
    u.pixels = static_cast<int>(gradient.items);
    u.dy = dy.back().data();
    u.weights = weights.back().floats();
    u.velocity = velocity.back().floats();
    u.client_size = gradient.columns;
    u.settings = on_device.data();
  }
  ASSERT_GT(updates.size(), 8u);
  check_cuda(update_biases(path.precision, kClients, updates, nullptr), "update_biases");
  for (size_t i = 0; i < gradients.size(); ++i) {
    const std::vector<double> v = velocity[i].read(), w = weights[i].read();
    const int64_t channels = gradients[i].columns;
    for (int64_t at = 0; at < std::ssize(v); ++at) {
      const auto client = static_cast<int>(at / channels);
      const float sum = sum_of_channel(gradients[i], client, at % channels);
      ASSERT_EQ(v[at], sum) << "layer " << i << ", channel " << at % channels;
      ASSERT_NEAR(w[at], 1.0 - settings[client].learning_rate * v[at],
                  (1.0 + std::abs(v[at])) * 4 * kRounding);
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
