// Maxima and means over windows of row maps against plain loops.
#ifdef FEDSMOOTH_CUDA

#include "fedsmooth/engine/cuda/kernels/rows/row_pool.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/engine/cuda/row_values.h"

namespace fedsmooth {
namespace {

struct PoolCase {
  RowShape shape;
  int kernel, stride;
};

std::ostream& operator<<(std::ostream& to, const PoolCase& c) {
  return to << c.shape << ", kernel " << c.kernel << ", stride " << c.stride;
}

// Squares that cover the map, windows that overlap, pixels in no window, one window, one pixel.
const std::vector<PoolCase> kCases = {
    {{2, 3, 32, 32, 16}, 2, 2}, {{1, 5, 8, 8, 64}, 2, 2},   {{2, 2, 15, 13, 32}, 3, 2},
    {{3, 1, 9, 7, 160}, 3, 1},  {{1, 2, 10, 11, 96}, 2, 3}, {{2, 3, 4, 4, 512}, 4, 4},
    {{1, 2, 6, 5, 64}, 1, 1},   {{2, 1, 1, 1, 2048}, 1, 1}, {{1, 2, 7, 7, 16}, 5, 2},
};

class RowPoolTest : public GpuTest,
                    public testing::WithParamInterface<std::tuple<PoolCase, Precision, bool>> {
 protected:
  RowPoolTest() : precision_(std::get<1>(GetParam())), means_(std::get<2>(GetParam())) {
    const PoolCase& c = std::get<0>(GetParam());
    kernel_ = c.kernel;
    stride_ = c.stride;
    in_ = out_ = c.shape;
    out_.height = (in_.height - kernel_) / stride_ + 1;
    out_.width = (in_.width - kernel_) / stride_ + 1;
    x_ = random_values(in_.size(), 1, half());
    for (double& x : x_) x = std::round(8 * x) / 8;  // so that many maxima are equal
    add_ = random_values(in_.size(), 2, half());
    dy_ = random_values(out_.size(), 3, half());
  }

  bool half() const { return precision_ == Precision::kBfloat16; }
  NumberType type() const { return type_of(precision_); }

  // Returns the places in the input of a window's values, in order.
  std::vector<int64_t> window_of(int64_t at) const {
    const int64_t pixel = at / out_.channels % out_.map().pixels();
    const int64_t y = pixel / out_.width * stride_, x = pixel % out_.width * stride_;
    std::vector<int64_t> places;
    for (int64_t i = y; i < y + kernel_; ++i) {
      for (int64_t j = x; j < x + kernel_; ++j) {
        places.push_back(((out_.row_of(at) * in_.height + i) * in_.width + j) * in_.channels +
                         out_.channel_of(at));
      }
    }
    return places;
  }

  Doubles expected() const {
    Doubles y;
    for (int64_t at = 0; at < out_.size(); ++at) {
      const std::vector<int64_t> window = window_of(at);
      double sum = 0, largest = -INFINITY;
      for (const int64_t place : window) {
        sum += x_[place];
        largest = std::max(largest, x_[place]);
      }
      y.push_back(means_ ? sum / static_cast<double>(window.size()) : largest);
    }
    return y;
  }

  Doubles expected_gradient() const {
    Doubles dx(x_.size());
    for (int64_t at = 0; at < out_.size(); ++at) {
      const std::vector<int64_t> window = window_of(at);
      if (means_) {
        for (const int64_t place : window)
          dx[place] += dy_[at] / static_cast<double>(window.size());
      } else {
        dx[*std::ranges::max_element(window, {}, [&](int64_t place) { return x_[place]; })] +=
            dy_[at];
      }
    }
    return dx;
  }

  RowPool pool(const DeviceValues& x, const DeviceValues& y) const {
    return {in_.clients, in_.rows, in_.map(), out_.map(), kernel_,
            stride_,     means_,   x.data(),  y.data()};
  }

  void expect_near(const Doubles& found, const Doubles& values) const {
    ASSERT_EQ(found.size(), values.size());
    for (size_t i = 0; i < found.size(); ++i) {
      const double step = half() ? kHalfStep * std::abs(values[i]) : 0;
      ASSERT_NEAR(found[i], values[i], step + 32 * kFullStep) << i;
    }
  }

  Precision precision_;
  bool means_;
  int kernel_, stride_;
  RowShape in_, out_;
  Doubles x_, add_, dy_;
};

TEST_P(RowPoolTest, Forward) {
  const DeviceValues x(x_, type()), y(Doubles(out_.size(), NAN), type());
  check_cuda(pool_rows(precision_, pool(x, y), nullptr), "pool_rows");
  if (means_) {
    expect_near(y.read(), expected());
  } else {
    EXPECT_EQ(y.read(), expected());
  }
}

TEST_P(RowPoolTest, Gradient) {
  const DeviceValues x(x_, type()), y(Doubles(out_.size(), NAN), type()), dy(dy_, type()),
      dx(Doubles(x_.size(), NAN), type());
  check_cuda(pool_rows(precision_, pool(x, y), nullptr), "pool_rows");
  RowPoolGradient g;
  g.pool = pool(x, y);
  g.dy = dy.data();
  g.dx = dx.data();
  check_cuda(differentiate_pool(precision_, g, nullptr), "differentiate_pool");
  Doubles values = expected_gradient();
  expect_near(dx.read(), values);
  // With a mask, added to another gradient in place.
  const DeviceValues sum(add_, type());
  g.add = g.dx = sum.data();
  g.mask = true;
  check_cuda(differentiate_pool(precision_, g, nullptr), "differentiate_pool");
  for (size_t i = 0; i < values.size(); ++i) values[i] = x_[i] > 0 ? values[i] + add_[i] : 0;
  expect_near(sum.read(), values);
}

TEST_P(RowPoolTest, AWindowWithNanIsNan) {
  for (size_t i = 0; i < x_.size(); i += 37) x_[i] = NAN;
  const DeviceValues x(x_, type()), y(Doubles(out_.size(), 0), type());
  check_cuda(pool_rows(precision_, pool(x, y), nullptr), "pool_rows");
  const Doubles found = y.read();
  for (int64_t at = 0; at < out_.size(); ++at) {
    const std::vector<int64_t> window = window_of(at);
    const bool any =
        std::ranges::any_of(window, [&](int64_t place) { return std::isnan(x_[place]); });
    ASSERT_EQ(std::isnan(found[at]), any) << at;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, RowPoolTest,
    testing::Combine(testing::ValuesIn(kCases),
                     testing::Values(Precision::kBfloat16, Precision::kFloat32), testing::Bool()));

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(RowPoolTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
