#ifdef FEDSMOOTH_CUDA

#include "fedsmooth/engine/cuda/kernels/rows/row_convolution.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fedsmooth/engine/cuda/kernels/rows/row_norm.h"
#include "fedsmooth/engine/cuda/kernels/wide/wide_convolution.h"
#include "tests/arrays.h"
#include "tests/engine/cuda/gpu.h"

namespace fedsmooth {
namespace {

// What bfloat16 and float32 round to, relative to the value.
constexpr double kHalfStep = 0x1p-8, kFullStep = 0x1p-23;

struct Shape2 {
  int clients, rows, height, width, in, out, kernel, stride, padding;
};

std::ostream& operator<<(std::ostream& to, const Shape2& s) {
  return to << s.clients << "x" << s.rows << " of " << s.height << "x" << s.width << "x" << s.in
            << " to " << s.out << ", kernel " << s.kernel << ", stride " << s.stride << ", padding "
            << s.padding;
}

// Every number of channels, whole and odd sizes, one row, rows that do not fill an item.
const std::vector<Shape2> kShapes = {
    {1, 1, 32, 32, 16, 16, 3, 1, 1}, {2, 3, 32, 32, 16, 32, 3, 2, 1},
    {2, 5, 16, 16, 32, 32, 3, 1, 1}, {1, 3, 16, 16, 32, 64, 3, 2, 1},
    {3, 7, 8, 8, 64, 64, 3, 1, 1},   {2, 3, 32, 32, 16, 32, 1, 2, 0},
    {2, 5, 16, 16, 32, 64, 1, 2, 0}, {2, 2, 15, 13, 32, 16, 3, 2, 0},
    {1, 5, 7, 9, 64, 32, 3, 1, 2},   {2, 3, 5, 3, 16, 64, 3, 1, 0},
    {1, 2, 33, 47, 64, 16, 1, 1, 0}, {1, 1, 1, 1, 16, 16, 3, 1, 1},
};

// Many channels, numbers of them that fill no tile, large kernels, a whole map as kernel, every
// parity of stride two, a kernel's gradient in two pieces.
const std::vector<Shape2> kWideShapes = {
    {2, 3, 8, 8, 64, 128, 3, 1, 1},   {1, 5, 8, 8, 128, 128, 3, 2, 1},
    {3, 7, 4, 4, 96, 160, 3, 1, 1},   {2, 2, 16, 16, 16, 64, 5, 1, 2},
    {1, 3, 8, 8, 160, 96, 1, 2, 0},   {2, 3, 4, 4, 512, 64, 4, 1, 0},
    {1, 1, 1, 1, 512, 512, 1, 1, 0},  {2, 2, 9, 7, 64, 96, 3, 2, 1},
    {1, 2, 12, 12, 32, 128, 3, 1, 0}, {2, 70, 16, 16, 16, 32, 3, 1, 1},
    {1, 3, 11, 10, 32, 64, 4, 2, 2},  {2, 2, 6, 5, 16, 16, 2, 2, 0},
};

enum class Kernels { kRows, kWide, kWidePortable };

std::vector<double> random_values(int64_t count, uint64_t seed, bool rounded) {
  const Array drawn = uniform({count}, seed);
  std::vector<double> values;
  for (const float v : values_of(drawn)) {
    const float value = v - 0.5f;
    values.push_back(rounded ? from_bfloat16(to_bfloat16(value)) : value);
  }
  return values;
}

class RowConvolutionTest
    : public GpuTest,
      public testing::WithParamInterface<std::tuple<Shape2, Precision, Kernels>> {
 protected:
  RowConvolutionTest()
      : shape_(std::get<0>(GetParam())),
        precision_(std::get<1>(GetParam())),
        kernels_(std::get<2>(GetParam())) {
    const auto& s = shape_;
    in_ = {s.height, s.width, s.in};
    out_ = {(s.height + 2 * s.padding - s.kernel) / s.stride + 1,
            (s.width + 2 * s.padding - s.kernel) / s.stride + 1, s.out};
    x_ = random_values(rows() * in_.row_size(), 1, half());
    weights_ = random_values(int64_t{s.clients} * kernel_size(), 2, half());
    dy_ = random_values(rows() * out_.row_size(), 3, half());
  }

  bool half() const { return precision_ == Precision::kBfloat16; }
  NumberType type() const { return half() ? NumberType::kBfloat16 : NumberType::kFloat; }
  int64_t rows() const { return int64_t{shape_.clients} * shape_.rows; }
  int64_t kernel_size() const {
    return int64_t{shape_.kernel} * shape_.kernel * shape_.in * shape_.out;
  }

  // Calls visit(x, dy, weight, tap) for every product that is summed up, by the places of its
  // factors and the row.
  template <class Visit>
  void for_each_product(const Visit& visit) const {
    const auto& s = shape_;
    for (int64_t row = 0; row < rows(); ++row) {
      for (int y = 0; y < out_.height; ++y) {
        for (int x = 0; x < out_.width; ++x) {
          for (int tap = 0; tap < s.kernel * s.kernel; ++tap) {
            const int from_y = y * s.stride + tap / s.kernel - s.padding;
            const int from_x = x * s.stride + tap % s.kernel - s.padding;
            if (from_y < 0 || from_y >= in_.height || from_x < 0 || from_x >= in_.width) continue;
            const int64_t from = (row * in_.pixels() + from_y * in_.width + from_x) * s.in;
            const int64_t to = (row * out_.pixels() + y * out_.width + x) * s.out;
            const int64_t weight = row / s.rows * kernel_size() + int64_t{tap} * s.out * s.in;
            for (int k = 0; k < s.out; ++k) {
              for (int c = 0; c < s.in; ++c) visit(from + c, to + k, weight + k * s.in + c);
            }
          }
        }
      }
    }
  }

  RowConvolution convolution() const {
    RowConvolution c;
    c.clients = shape_.clients;
    c.rows = shape_.rows;
    c.in = in_;
    c.out = out_;
    c.kernel = shape_.kernel;
    c.stride = shape_.stride;
    c.padding = shape_.padding;
    c.weights_client = kernel_size();
    c.wide = kernels_ != Kernels::kRows;
    return c;
  }

  void convolve(const RowConvolution& c) const {
    check_cuda(kernels_ == Kernels::kWidePortable ? convolve_wide_portable(c, nullptr)
                                                  : convolve_rows(precision_, c, nullptr),
               "convolve_rows");
  }

  void differentiate(const RowGradient& g) const {
    check_cuda(kernels_ == Kernels::kWidePortable ? differentiate_wide_portable(g, nullptr)
                                                  : differentiate_kernel(precision_, g, nullptr),
               "differentiate_kernel");
  }

  // Returns the most products of a result, and of a gradient of the input.
  double products(int channels) const {
    return static_cast<double>(shape_.kernel) * shape_.kernel * channels;
  }

  Shape2 shape_;
  Precision precision_;
  Kernels kernels_;
  MapShape in_, out_;
  std::vector<double> x_, weights_, dy_;
};

// A sum, and what rounding may add to it: of every term to it, and of itself.
struct Sums {
  std::vector<double> value, size;
  explicit Sums(int64_t count) : value(count), size(count) {}
  void add(int64_t at, double term) {
    value[at] += term;
    size[at] += std::abs(term);
  }
  void expect(const std::vector<double>& found, double terms, double last) const {
    ASSERT_EQ(found.size(), value.size());
    for (size_t i = 0; i < found.size(); ++i) {
      const double bound = terms * kFullStep * size[i] + last * std::abs(value[i]) + 1e-12;
      ASSERT_LE(std::abs(found[i] - value[i]), bound) << "value " << i << " is " << value[i];
    }
  }
};

// [client, part, count] to [client, count].
std::vector<double> add_parts(const std::vector<double>& values, int parts, int count) {
  std::vector<double> sums(values.size() / parts);
  for (size_t i = 0; i < values.size(); ++i) {
    sums[i / (static_cast<size_t>(parts) * count) * count + i % count] += values[i];
  }
  return sums;
}

TEST_P(RowConvolutionTest, ForwardWithBiasShortcutAndRelu) {
  Sums expected(rows() * out_.row_size());
  for_each_product([&](int64_t x, int64_t y, int64_t w) { expected.add(y, x_[x] * weights_[w]); });
  const std::vector<double> bias = random_values(int64_t{shape_.clients} * shape_.out, 4, false);
  for (int64_t i = 0; i < std::ssize(expected.value); ++i) {
    const int64_t client = i / (shape_.rows * out_.row_size());
    expected.add(i, bias[client * shape_.out + i % shape_.out]);
    expected.add(i, dy_[i]);
    expected.value[i] = std::max(expected.value[i], 0.0);
  }
  const DeviceValues x(x_, type()), weights(weights_, type()), add(dy_, type()),
      biases(bias, NumberType::kFloat), y(std::vector<double>(dy_.size(), NAN), type());
  RowConvolution c = convolution();
  c.x = x.data();
  c.weights = weights.data();
  c.bias = biases.floats();
  c.bias_client = shape_.out;
  c.add = add.data();
  c.relu = true;
  c.y = y.data();
  convolve(c);
  expected.expect(y.read(), products(shape_.in) + 2, half() ? kHalfStep : 0);
}

TEST_P(RowConvolutionTest, SumsOfWhatItWrote) {
  const DeviceValues x(x_, type()), weights(weights_, type()),
      y(std::vector<double>(dy_.size(), NAN), type());
  RowConvolution c = convolution();
  const int parts = convolution_parts(precision_, c), k = shape_.out;
  const DeviceValues sums(std::vector<double>(int64_t{shape_.clients} * parts * 2 * k, NAN),
                          NumberType::kFloat);
  c.x = x.data();
  c.weights = weights.data();
  c.y = y.data();
  c.sums = sums.floats();
  convolve(c);
  const std::vector<double> written = y.read();
  Sums expected(int64_t{shape_.clients} * 2 * k);
  for (int64_t i = 0; i < std::ssize(written); ++i) {
    const int64_t at = i / (shape_.rows * out_.row_size()) * 2 * k + i % k;
    expected.add(at, written[i]);
    expected.add(at + k, written[i] * written[i]);
  }
  // The most values that are added in float32.
  expected.expect(add_parts(sums.read(), parts, 2 * k), 512 + 16, 0);
}

TEST_P(RowConvolutionTest, GradientOfTheInput) {
  Sums expected(rows() * in_.row_size());
  for_each_product([&](int64_t x, int64_t y, int64_t w) { expected.add(x, dy_[y] * weights_[w]); });
  for (size_t i = 0; i < x_.size(); ++i) {
    if (x_[i] <= 0) expected.value[i] = expected.size[i] = 0;
  }
  std::vector<double> turned(weights_.size());
  const int taps = shape_.kernel * shape_.kernel;
  for (int64_t i = 0; i < std::ssize(weights_); ++i) {
    const int64_t client = i / kernel_size(), in = i % shape_.in, out = i / shape_.in % shape_.out;
    const int64_t tap = i % kernel_size() / (shape_.in * shape_.out);
    turned[client * kernel_size() + ((taps - 1 - tap) * shape_.in + in) * shape_.out + out] =
        weights_[i];
  }
  const DeviceValues dy(dy_, type()), weights(turned, type()), mask(x_, type()),
      dx(std::vector<double>(x_.size(), NAN), type());
  RowConvolution c = convolution();
  std::swap(c.in, c.out);
  c.stride = 1;
  c.spread = shape_.stride;
  c.padding = shape_.kernel - 1 - shape_.padding;
  c.x = dy.data();
  c.weights = weights.data();
  c.mask = mask.data();
  c.y = dx.data();
  const int channels = shape_.in, parts = convolution_parts(precision_, c);
  const DeviceValues sums(std::vector<double>(int64_t{shape_.clients} * parts * 2 * channels, NAN),
                          NumberType::kFloat);
  std::vector<NormValues> norms;
  for (int i = 0; i < shape_.clients * channels; ++i) {
    norms.push_back({0.1f * static_cast<float>(i % 3), 1.0f + static_cast<float>(i % 5)});
  }
  const DeviceArray<NormValues> values(norms);
  if (half()) {  // what the norm before will need
    c.sums = sums.floats();
    c.normed = mask.data();
    c.values = values.data();
    c.values_client = channels;
  }
  convolve(c);
  const std::vector<double> found = dx.read();
  expected.expect(found, products(shape_.out), half() ? kHalfStep : 0);
  if (!half()) return;
  Sums both(int64_t{shape_.clients} * 2 * channels);
  for (int64_t i = 0; i < std::ssize(found); ++i) {
    const int64_t client = i / (shape_.rows * in_.row_size()), k = i % channels;
    const NormValues& norm = norms[client * channels + k];
    both.add(client * 2 * channels + k, found[i]);
    both.add((client * 2 + 1) * channels + k, found[i] * (x_[i] - norm.mean) * norm.inverse);
  }
  both.expect(add_parts(sums.read(), parts, 2 * channels), 512 + 16, 0);
}

TEST_P(RowConvolutionTest, GradientOfTheKernel) {
  Sums expected(int64_t{shape_.clients} * kernel_size());
  for_each_product([&](int64_t x, int64_t y, int64_t w) { expected.add(w, x_[x] * dy_[y]); });
  const DeviceValues x(x_, type()), dy(dy_, type());
  const bool wide = kernels_ != Kernels::kRows;
  const DeviceArray<float> room(wide ? wide_gradient_room(convolution()) : 0);
  for (const int pieces : wide ? std::vector{1} : std::vector{1, 3, gradient_pieces(shape_.rows)}) {
    const int64_t count = int64_t{shape_.clients} * kernel_size();
    const DeviceValues gradient(std::vector<double>(pieces * count, NAN), NumberType::kFloat);
    RowGradient g;
    g.forward = convolution();
    g.forward.x = x.data();
    g.pieces = pieces;
    g.dy = dy.data();
    g.gradient = gradient.floats();
    g.gradient_client = kernel_size();
    g.room = room.data();
    differentiate(g);
    const std::vector<double> parts = gradient.read();
    std::vector<double> found(count);
    for (int64_t i = 0; i < std::ssize(parts); ++i) found[i % count] += parts[i];
    expected.expect(found, shape_.rows * out_.pixels() + 2.0, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, RowConvolutionTest,
                         testing::Combine(testing::ValuesIn(kShapes),
                                          testing::Values(Precision::kBfloat16,
                                                          Precision::kFloat32),
                                          testing::Values(Kernels::kRows)));

INSTANTIATE_TEST_SUITE_P(WideShapes, RowConvolutionTest,
                         testing::Combine(testing::ValuesIn(kWideShapes),
                                          testing::Values(Precision::kBfloat16),
                                          testing::Values(Kernels::kWide, Kernels::kWidePortable)));

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(RowConvolutionTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
