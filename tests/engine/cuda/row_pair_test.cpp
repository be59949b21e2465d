#ifdef FEDSMOOTH_CUDA

#include "fedsmooth/engine/cuda/kernels/rows/row_pair.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/arrays.h"
#include "tests/engine/cuda/gpu.h"

namespace fedsmooth {
namespace {

struct PairCase {
  int channels, clients, rows;
};

std::ostream& operator<<(std::ostream& to, const PairCase& c) {
  return to << c.clients << "x" << c.rows << " of " << c.channels << " channels";
}

std::vector<double> around_zero(int64_t count, uint64_t seed) {
  const Array drawn = uniform({count}, seed);
  std::vector<double> values;
  for (const float v : values_of(drawn)) values.push_back(v - 0.5);
  return values;
}

class RowPairTest : public GpuTest, public testing::WithParamInterface<PairCase> {
 protected:
  static constexpr NumberType kType = NumberType::kBfloat16;

  RowPairTest() {
    const auto [channels, clients, rows] = GetParam();
    for (RowConvolution* c : {&first_, &second_}) {
      c->clients = clients;
      c->rows = rows;
      c->in = c->out = {512 / channels, 512 / channels, channels};
      c->weights_client = int64_t{9} * channels * channels;
      c->bias_client = channels;
    }
    values_ = int64_t{clients} * rows * first_.in.row_size();
    weights_ = clients * first_.weights_client;
    biases_ = int64_t{clients} * channels;
  }

  DeviceValues map(uint64_t seed) const { return {around_zero(values_, seed), kType}; }
  DeviceValues weights(uint64_t seed) const { return {around_zero(weights_, seed), kType}; }
  DeviceValues bias(uint64_t seed) const {
    return {around_zero(biases_, seed), NumberType::kFloat};
  }
  DeviceValues nothing() const { return {std::vector<double>(values_, NAN), kType}; }

  RowConvolution first_, second_;
  int64_t values_ = 0, weights_ = 0, biases_ = 0;
};

TEST_P(RowPairTest, IsTwoConvolutions) {
  const DeviceValues x = map(1), mask = map(2), add = map(3), later = map(4), between = nothing(),
                     y = nothing(), apart_between = nothing(), apart_y = nothing();
  const DeviceValues weights_a = weights(5), weights_b = weights(6), bias_a = bias(7),
                     bias_b = bias(8);
  for (const bool forwards : {true, false}) {
    RowConvolution a = first_, b = second_;
    a.x = x.data();
    a.weights = weights_a.data();
    b.weights = weights_b.data();
    b.add = add.data();
    if (forwards) {
      a.bias = bias_a.floats();
      b.bias = bias_b.floats();
      a.relu = b.relu = true;
    } else {
      a.mask = mask.data();
      b.mask = later.data();
    }
    RowPair pair{a, b};
    ASSERT_TRUE(can_pair(pair));
    pair.first.y = forwards ? between.data() : nullptr;
    pair.second.y = y.data();
    check_cuda(convolve_pair(pair, nullptr), "convolve_pair");
    a.y = apart_between.data();
    b.x = apart_between.data();
    b.y = apart_y.data();
    check_cuda(convolve_rows(Precision::kBfloat16, a, nullptr), "convolve_rows");
    check_cuda(convolve_rows(Precision::kBfloat16, b, nullptr), "convolve_rows");
    EXPECT_EQ(y.read(), apart_y.read());
    if (forwards) {
      EXPECT_EQ(between.read(), apart_between.read());
    }
  }
}

// One row, rows that do not fill an item, more items than run at once, weights that change between.
INSTANTIATE_TEST_SUITE_P(Shapes, RowPairTest,
                         testing::Values(PairCase{16, 1, 1}, PairCase{16, 3, 5},
                                         PairCase{16, 9, 60}, PairCase{32, 1, 1},
                                         PairCase{32, 7, 60}, PairCase{64, 1, 1},
                                         PairCase{64, 3, 7}, PairCase{64, 12, 60}));

using RowPairShapesTest = GpuTest;

TEST_F(RowPairShapesTest, OtherShapesAreRefused) {
  RowConvolution c;
  c.in = c.out = {32, 32, 16};
  const auto refused = [&](const auto& change) {
    RowPair pair{c, c};
    change(pair);
    return !can_pair(pair);
  };
  float sums = 0;
  EXPECT_FALSE(refused([](RowPair&) {}));
  EXPECT_TRUE(refused([](RowPair& p) { p.first.stride = 2; }));
  EXPECT_TRUE(refused([](RowPair& p) { p.second.spread = 2; }));
  EXPECT_TRUE(refused([](RowPair& p) { p.second.kernel = 1; }));
  EXPECT_TRUE(refused([](RowPair& p) { p.first.padding = 0; }));
  EXPECT_TRUE(refused([](RowPair& p) { p.second.out.channels = 32; }));
  EXPECT_TRUE(refused([](RowPair& p) { p.first.in.width = 16; }));
  EXPECT_TRUE(refused([&](RowPair& p) { p.second.sums = &sums; }));
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(RowPairTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
