// Products of maps with many rows on Hopper: to the bit those of the kernels for few.
#ifdef FEDSMOOTH_CUDA

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iostream>
#include <limits>

#include "tests/engine/cuda/products.h"

namespace fedsmooth {
namespace {

constexpr uint16_t kUntouched = 0xabcd;

std::vector<float> draw_floats(int64_t count, uint64_t key) {
  std::vector<float> values(count);
  fill_normal({Key{key}}, 0, values.data(), count);
  return values;
}

// A layer with inputs and weights of its own.
class WideLayer {
 public:
  WideLayer(const Product& stage, int clients, int rows, bool pooled)
      : stage_(stage),
        pairs_(stage.by_output, squares(stage.out), kBest.tiling(Side::kForward, stage.by_output)),
        x_(inputs(clients, rows)),
        w_(rounded(draw_floats(clients * weights(), 2))),
        bias_(biases(clients)) {
    p_.clients = clients;
    p_.rows = rows;
    p_.depth = stage.in.channels;
    p_.columns = stage.out.channels;
    p_.left = x_.data();
    p_.kernel = w_.data();
    p_.kernel_client = weights();
    p_.pairs = pairs_.view();
    p_.left_pixels = stage.in.pixels();
    p_.taps = stage.taps;
    p_.bias = bias_.data();
    p_.bias_client = stage.out.channels;
    p_.relu = stage.relu;
    p_.pool_columns = pooled ? stage.out.width / 2 : 0;
    const int64_t size = clients * rows * stage.out.row_size();
    out_ = DeviceArray<uint16_t>(pooled ? size / 4 : size);
    p_.out = out_.data();
  }

  // The kernel for few rows.
  cudaError_t narrow() const {
    MapProduct p = p_;
    p.pairs.step_count = 0;
    return multiply_maps(Precision::kBfloat16, p, nullptr);
  }
  cudaError_t wide() const { return multiply_many_rows(p_, nullptr); }

  template <class Launch>
  std::vector<uint16_t> result_of(const Launch& launch) {
    const std::vector<uint16_t> before(out_.size(), kUntouched);
    out_.upload(before.data(), out_.size(), nullptr);
    check_cuda(launch(), "product");
    return out_.download(nullptr);
  }

  // Which value of the result it is.
  std::string place_of(int64_t i) const {
    const int64_t row = i / p_.columns;
    return fmt::format("map {}, row {}, column {}", row / p_.rows, row % p_.rows, i % p_.columns);
  }

  double operations() const {
    return 2.0 * count_pairs(stage_.by_output) * p_.clients * p_.rows * p_.depth * p_.columns;
  }

 private:
  int64_t weights() const {
    return int64_t{stage_.taps} * stage_.in.channels * stage_.out.channels;
  }

  // Every pixel's row 5 is zero, and row 7 begins with NaN.
  std::vector<uint16_t> inputs(int clients, int rows) const {
    const int64_t channels = stage_.in.channels, maps = int64_t{clients} * stage_.in.pixels();
    std::vector<float> values = draw_floats(maps * rows * channels, 1);
    for (int64_t map = 0; map < maps; ++map) {
      float* first = values.data() + map * rows * channels;
      std::fill_n(first + 5 * channels, channels, 0.0f);
      first[7 * channels] = std::numeric_limits<float>::quiet_NaN();
    }
    return rounded(values);
  }

  // Some so small that a sum of zero and them rounds to zero, of either sign.
  std::vector<float> biases(int clients) const {
    std::vector<float> values = draw_floats(clients * stage_.out.channels, 3);
    values[3] = -1e-43f;
    values[4] = 1e-43f;
    return values;
  }

  const Product& stage_;
  PairTable pairs_;
  DeviceArray<uint16_t> x_, w_, out_;
  DeviceArray<float> bias_;
  MapProduct p_;
};

// Calls each(layer, name) for those of AlexNet's layers that have a kernel for many rows.
template <class Each>
int each_wide_layer(int clients, int rows, const Each& each) {
  const std::vector<Product> products = products_of("alexnet");
  int layers = 0;
  for (size_t i = 0; i + 1 < products.size(); ++i) {
    const Product& stage = products[i];
    for (const bool pooled : {false, true}) {
      if (pooled && !stage.pools_squares) continue;
      WideLayer layer(stage, clients, rows, pooled);
      const cudaError_t status = layer.wide();
      if (status == cudaErrorNotSupported) continue;
      check_cuda(status, "multiply_many_rows");
      ++layers;
      each(layer, fmt::format("{} to {} channels{}", stage.in.channels, stage.out.channels,
                              pooled ? ", pooled" : ""));
    }
  }
  return layers;
}

bool has_hopper() { return choose_tiling(Side::kForward, 4, 16).hopper; }

void expect_same_bits(int clients, int rows) {
  const int layers = each_wide_layer(clients, rows, [](WideLayer& layer, const std::string& name) {
    const std::vector<uint16_t> wide = layer.result_of([&] { return layer.wide(); });
    const std::vector<uint16_t> narrow = layer.result_of([&] { return layer.narrow(); });
    int64_t different = 0, first = 0, last = 0, untouched = 0;
    for (int64_t i = 0; i < std::ssize(wide); ++i) {
      untouched += wide[i] == kUntouched;
      if (wide[i] == narrow[i]) continue;
      if (different++ == 0) first = i;
      last = i;
    }
    EXPECT_EQ(different, 0) << name << ", from " << layer.place_of(first) << " to "
                            << layer.place_of(last);
    EXPECT_EQ(untouched, 0) << name;
  });
  // Four convolutions, of which two are followed by maxima.
  EXPECT_EQ(layers, has_hopper() ? 6 : 0);
}

using WideProductTest = GpuTest;
using SlowWideProductTest = GpuTest;

TEST_F(WideProductTest, SameBitsFor128Rows) { expect_same_bits(3, 128); }
TEST_F(WideProductTest, SameBitsFor256Rows) { expect_same_bits(3, 256); }
TEST_F(SlowWideProductTest, SameBitsForVotes) { expect_same_bits(1, 64 * 132); }

// More row tiles than multiprocessors, and a number of them that does not divide.
TEST_F(SlowWideProductTest, SameBitsForManyClients) { expect_same_bits(3, 128 * 33); }

TEST_F(SlowWideProductTest, TakesLessTimeForVotes) {
  double all_narrow = 0, all_wide = 0;
  each_wide_layer(1, 64 * 132, [&](WideLayer& layer, const std::string& name) {
    const double narrow = microseconds([&] { check_cuda(layer.narrow(), "product"); });
    const double wide = microseconds([&] { check_cuda(layer.wide(), "product"); });
    all_narrow += narrow;
    all_wide += wide;
    std::cout << fmt::format("{}: {:.1f} us, for many rows {:.1f} us, {:.0f} TFLOP/s\n", name,
                             narrow, wide, layer.operations() / wide / 1e6);
  });
  EXPECT_LT(all_wide, all_narrow);
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(WideProductTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
