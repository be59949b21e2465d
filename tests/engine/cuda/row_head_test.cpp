// The end of a network of row maps against sums in double.
#ifdef FEDSMOOTH_CUDA

#include "fedsmooth/engine/cuda/kernels/rows/row_head.h"

#include <gtest/gtest.h>

#include "tests/engine/cuda/row_values.h"

namespace fedsmooth {
namespace {

struct HeadCase {
  RowShape shape;
  int classes;
};

std::ostream& operator<<(std::ostream& to, const HeadCase& c) {
  return to << c.shape << ", " << c.classes << " classes";
}

// Few and many channels and classes, odd sizes, one row, one pixel.
const std::vector<HeadCase> kCases = {
    {{2, 3, 8, 8, 64}, 10},   {{1, 5, 3, 3, 16}, 7},    {{3, 2, 7, 5, 32}, 300},
    {{2, 1, 5, 7, 96}, 10},   {{1, 9, 3, 5, 160}, 33},  {{2, 3, 4, 4, 512}, 10},
    {{1, 2, 1, 1, 512}, 100}, {{1, 1, 1, 1, 2048}, 11},
};

class RowHeadTest : public GpuTest,
                    public testing::WithParamInterface<std::tuple<HeadCase, Precision, bool>> {
 protected:
  RowHeadTest()
      : shape_(std::get<0>(GetParam()).shape),
        classes_(std::get<0>(GetParam()).classes),
        precision_(std::get<1>(GetParam())),
        flat_(std::get<2>(GetParam())) {
    features_ = flat_ ? static_cast<int>(shape_.map().row_size()) : shape_.channels;
    size_ = weight() + classes_ * features_;
    x_ = random_values(shape_.size(), 1, half());
    dlogits_ = random_values(rows() * classes_, 2, false);
    vectors_ = random_values(int64_t{shape_.clients} * size_, 3, false);
    const double pixels = flat_ ? 1 : shape_.map().pixels();
    values_.resize(rows() * features_);
    for (int64_t at = 0; at < std::ssize(x_); ++at) values_[feature_of(at)] += x_[at] / pixels;
  }

  bool half() const { return precision_ == Precision::kBfloat16; }
  NumberType type() const { return type_of(precision_); }
  int64_t rows() const { return int64_t{shape_.clients} * shape_.rows; }
  int bias() const { return 48; }  // offsets in a client's vector
  int weight() const { return 64 + classes_; }
  // Returns the place of what a value of x belongs to in [client, row, feature].
  int64_t feature_of(int64_t at) const {
    return flat_ ? at : shape_.row_of(at) * shape_.channels + shape_.channel_of(at);
  }
  double weight_at(int64_t row, int k, int feature) const {
    return vectors_[row / shape_.rows * size_ + weight() + k * features_ + feature];
  }

  RowHead head(const DeviceValues& x, const DeviceValues& vectors, const DeviceValues& means,
               const DeviceValues& logits) const {
    RowHead h;
    h.clients = shape_.clients;
    h.rows = shape_.rows;
    h.classes = classes_;
    h.map = shape_.map();
    h.x = x.data();
    h.vectors = vectors.floats();
    h.size = size_;
    h.weight = weight();
    h.bias = bias();
    h.flat = flat_;
    h.means = means.floats();
    h.logits = logits.floats();
    return h;
  }

  DeviceValues nothing(int64_t count) const { return {Doubles(count, NAN), NumberType::kFloat}; }

  RowShape shape_;
  int classes_;
  Precision precision_;
  bool flat_;
  int features_, size_;
  Doubles x_, dlogits_, vectors_, values_;
};

TEST_P(RowHeadTest, Logits) {
  const DeviceValues x(x_, type()), vectors(vectors_, NumberType::kFloat),
      means = nothing(rows() * features_), logits = nothing(rows() * classes_);
  RowHead h = head(x, vectors, means, logits);
  ASSERT_EQ(h.features(), features_);
  for (const bool has_bias : {true, false}) {
    h.has_bias = has_bias;
    check_cuda(answer_rows(precision_, h, nullptr), "answer_rows");
    Sums expected(rows() * classes_);
    for (int64_t row = 0; row < rows(); ++row) {
      for (int k = 0; k < classes_; ++k) {
        const int64_t at = row * classes_ + k;
        if (has_bias) expected.add(at, vectors_[row / shape_.rows * size_ + bias() + k]);
        for (int f = 0; f < features_; ++f) {
          expected.add(at, values_[row * features_ + f] * weight_at(row, k, f), 0.25);
        }
      }
    }
    expected.expect(logits.read(), 256, 0);
  }
  const Doubles found = means.read();
  for (size_t i = 0; i < values_.size(); ++i) ASSERT_NEAR(found[i], values_[i], 64 * kFullStep);
}

TEST_P(RowHeadTest, GradientOfTheMap) {
  const DeviceValues x(x_, type()), vectors(vectors_, NumberType::kFloat),
      dlogits(dlogits_, NumberType::kFloat), means = nothing(1), logits = nothing(1);
  Sums expected(rows() * features_);
  for (int64_t row = 0; row < rows(); ++row) {
    for (int k = 0; k < classes_; ++k) {
      for (int f = 0; f < features_; ++f) {
        expected.add(row * features_ + f, dlogits_[row * classes_ + k] * weight_at(row, k, f));
      }
    }
  }
  const double pixels = flat_ ? 1 : shape_.map().pixels();
  for (const bool mask : {false, true}) {
    const DeviceValues dx(Doubles(x_.size(), NAN), type());
    const RowHeadGradient g{head(x, vectors, means, logits), dlogits.floats(), mask, dx.data()};
    check_cuda(differentiate_means(precision_, g, nullptr), "differentiate_means");
    Sums of_map(shape_.size());
    for (int64_t at = 0; at < std::ssize(x_); ++at) {
      const int64_t feature = feature_of(at);
      if (mask && x_[at] <= 0) continue;
      of_map.add(at, expected.value[feature] / pixels, expected.size[feature] / pixels);
    }
    of_map.expect(dx.read(), classes_ + 2, half() ? kHalfStep : 0);
  }
}

TEST_P(RowHeadTest, GradientOfTheLinearLayer) {
  constexpr float kMark = 7.5f;  // what nothing must overwrite
  const DeviceValues x(x_, type()), vectors(vectors_, NumberType::kFloat),
      dlogits(dlogits_, NumberType::kFloat),
      means = nothing(rows() * features_), logits = nothing(rows() * classes_),
      gradients(Doubles(vectors_.size(), kMark), NumberType::kFloat);
  const RowHeadGradient g{head(x, vectors, means, logits), dlogits.floats()};
  check_cuda(answer_rows(precision_, g.head, nullptr), "answer_rows");
  check_cuda(differentiate_linear(g, gradients.floats(), nullptr), "differentiate_linear");
  Sums expected(std::ssize(vectors_));
  for (int64_t at = 0; at < std::ssize(vectors_); ++at) {
    const int64_t within = at % size_;
    if (within < bias() || (within >= bias() + classes_ && within < weight()) ||
        within >= weight() + classes_ * features_) {
      expected.add(at, kMark, 0);
    }
  }
  for (int64_t row = 0; row < rows(); ++row) {
    const int64_t vector = row / shape_.rows * size_;
    for (int k = 0; k < classes_; ++k) {
      const double dlogit = dlogits_[row * classes_ + k];
      expected.add(vector + bias() + k, dlogit);
      for (int f = 0; f < features_; ++f) {
        const int64_t at = vector + weight() + k * features_ + f;
        expected.add(at, dlogit * values_[row * features_ + f], 0.25);
      }
    }
  }
  expected.expect(gradients.read(), 64, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, RowHeadTest,
    testing::Combine(testing::ValuesIn(kCases),
                     testing::Values(Precision::kBfloat16, Precision::kFloat32), testing::Bool()));

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(RowHeadTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
