// Batch norm of row maps against sums in double.
#ifdef FEDSMOOTH_CUDA

#include "fedsmooth/engine/cuda/kernels/rows/row_norm.h"

#include <gtest/gtest.h>

#include "tests/engine/cuda/row_values.h"

namespace fedsmooth {
namespace {

// Slices of 16, 32 and 64 channels, alone and several; several parts, one row, one pixel.
const std::vector<RowShape> kShapes = {
    {1, 1, 32, 32, 16},  {2, 3, 33, 31, 64}, {2, 5, 16, 16, 32}, {3, 7, 8, 8, 96},
    {2, 2, 15, 13, 160}, {2, 17, 7, 9, 512}, {1, 1, 1, 1, 2048}, {2, 12, 17, 19, 192},
};

// The most values that are added in float32: those of a thread, then of the threads of a block.
constexpr double kAdditions = 16 + 128;
constexpr double kEpsilon = 1e-5;
constexpr float kMark = 7.5f;  // what nothing must overwrite

// A client's vector: scales, biases, running means and variances, the bias of a convolution.
enum Tensor { kScale, kBias, kMean, kVariance, kConvBias, kTensors };

class RowNormTest : public GpuTest,
                    public testing::WithParamInterface<std::tuple<RowShape, Precision>> {
 protected:
  RowNormTest()
      : shape_(std::get<0>(GetParam())),
        precision_(std::get<1>(GetParam())),
        x_(random_values(shape_.size(), 1, half())),
        add_(random_values(shape_.size(), 2, half())),
        dy_(random_values(shape_.size(), 3, half())),
        vectors_(random_values(int64_t{shape_.clients} * vector_size(), 4, false)) {
    for (double& v : vectors_) v = static_cast<float>(v + 1);  // running variances are positive
  }

  bool half() const { return precision_ == Precision::kBfloat16; }
  NumberType type() const { return type_of(precision_); }
  int vector_size() const { return kTensors * shape_.channels; }
  int64_t values_count() const { return int64_t{shape_.clients} * shape_.channels; }
  double count() const { return static_cast<double>(shape_.rows) * shape_.map().pixels(); }
  // Returns the place in vectors_ of what is at `place` of [client, channel].
  int64_t in_vector(int64_t place, Tensor tensor) const {
    return place / shape_.channels * vector_size() + tensor * shape_.channels +
           place % shape_.channels;
  }

  NormWeights weights(const DeviceValues& vectors) const {
    const int64_t c = shape_.channels;
    return {vectors.floats(), vector_size(), kScale * c, kBias * c, kMean * c, kVariance * c};
  }

  NormStatistics statistics(const DeviceValues& sums, const DeviceValues& vectors,
                            const DeviceArray<NormValues>& values) const {
    return {shape_.clients, shape_.rows,    map_parts(shape_.rows, shape_.map()),
            shape_.map(),   sums.floats(),  weights(vectors),
            values.data(),  shape_.channels};
  }

  DeviceValues no_sums() const {
    const int64_t parts = map_parts(shape_.rows, shape_.map());
    return {Doubles(parts * 2 * values_count(), NAN), NumberType::kFloat};
  }

  // [client, part, 2, channel] to [client, 2, channel].
  Doubles over_parts(const Doubles& sums) const {
    const int64_t parts = map_parts(shape_.rows, shape_.map()), both = 2 * shape_.channels;
    Doubles found(2 * values_count());
    for (int64_t i = 0; i < std::ssize(sums); ++i) {
      found[i / (parts * both) * both + i % both] += sums[i];
    }
    return found;
  }

  // Returns random values, as if compute_statistics() had computed them.
  std::vector<NormValues> random_norms() const {
    const Doubles drawn = random_values(6 * values_count(), 5, false);
    std::vector<NormValues> norms;
    for (int64_t i = 0; i < values_count(); ++i) {
      const auto at = [&](int64_t j) { return static_cast<float>(drawn[6 * i + j]); };
      norms.push_back({at(0), at(1) + 1, at(2) + 1, at(3), at(4), at(5)});
    }
    return norms;
  }

  NormGradient gradient(const DeviceValues& dy, const DeviceValues& sums,
                        const DeviceValues& gradients, const DeviceArray<NormValues>& values,
                        const DeviceValues& dx) const {
    NormGradient g;
    g.clients = shape_.clients;
    g.rows = shape_.rows;
    g.map = shape_.map();
    g.dy = dy.data();
    g.sums = sums.floats();
    g.weights = weights(gradients);  // only offsets are read
    g.gradients = gradients.floats();
    g.values = values.data();
    g.values_client = shape_.channels;
    g.dx = dx.data();
    return g;
  }

  // Expects dx that follows from the norms' values, from `add` and with the mask.
  void expect_gradient(const Doubles& dx, const std::vector<NormValues>& norms, bool adds,
                       bool mask) const {
    ASSERT_EQ(dx.size(), x_.size());
    for (int64_t at = 0; at < std::ssize(dx); ++at) {
      if (mask && x_[at] <= 0) {
        ASSERT_EQ(dx[at], 0) << at;
        continue;
      }
      const NormValues& v = norms[shape_.place_of(at)];
      const double n = (x_[at] - v.mean) * v.inverse;
      const double other = adds ? add_[at] : 0;
      const double value = v.scale * (dy_[at] - v.mean_dy - n * v.mean_product) + other;
      const double of_n = (std::abs(x_[at]) + std::abs(v.mean)) * v.inverse;
      const double size =
          std::abs(v.scale) * (1 + std::abs(v.mean_dy) + of_n * std::abs(v.mean_product)) + 1;
      const double bound = 8 * kFullStep * size + (half() ? kHalfStep * std::abs(value) : 0);
      ASSERT_NEAR(dx[at], value, bound) << at;
    }
  }

  RowShape shape_;
  Precision precision_;
  Doubles x_, add_, dy_, vectors_;
};

TEST_P(RowNormTest, SumsOfAMap) {
  const DeviceValues x(x_, type()), sums = no_sums();
  const MapSums s{shape_.clients, shape_.rows, shape_.map(), x.data(), sums.floats()};
  check_cuda(sum_map(precision_, s, nullptr), "sum_map");
  Sums expected(2 * values_count());
  for (int64_t at = 0; at < std::ssize(x_); ++at) {
    const int64_t place = 2 * shape_.client_of(at) * shape_.channels + shape_.channel_of(at);
    expected.add(place, x_[at]);
    expected.add(place + shape_.channels, x_[at] * x_[at]);
  }
  expected.expect(over_parts(sums.read()), kAdditions, 0);
}

TEST_P(RowNormTest, Statistics) {
  const DeviceValues x(x_, type()), sums = no_sums(), vectors(vectors_, NumberType::kFloat);
  const DeviceArray<NormValues> values(values_count());
  const MapSums s{shape_.clients, shape_.rows, shape_.map(), x.data(), sums.floats()};
  check_cuda(sum_map(precision_, s, nullptr), "sum_map");
  check_cuda(compute_statistics(statistics(sums, vectors, values), nullptr), "compute_statistics");
  Doubles mean(values_count()), squares(values_count());
  for (int64_t at = 0; at < std::ssize(x_); ++at) mean[shape_.place_of(at)] += x_[at] / count();
  for (int64_t at = 0; at < std::ssize(x_); ++at) {
    squares[shape_.place_of(at)] += std::pow(x_[at] - mean[shape_.place_of(at)], 2);
  }
  const std::vector<NormValues> found = values.download(nullptr);
  const Doubles after = vectors.read();
  for (int64_t i = 0; i < values_count(); ++i) {
    const double variance = squares[i] / count(), inverse = 1 / std::sqrt(variance + kEpsilon);
    const double of_mean = kAdditions * kFullStep, of_variance = 3 * of_mean;  // |x| is at most 0.5
    const double of_inverse = inverse * (of_variance * inverse * inverse + 2 * kFullStep);
    const double scale = vectors_[in_vector(i, kScale)], bias = vectors_[in_vector(i, kBias)];
    ASSERT_NEAR(found[i].mean, mean[i], of_mean) << i;
    ASSERT_NEAR(found[i].inverse, inverse, of_inverse) << i;
    ASSERT_NEAR(found[i].scale, scale * inverse, 1.5 * of_inverse) << i;
    ASSERT_NEAR(found[i].shift, bias - mean[i] * found[i].scale, 2 * of_mean * (1 + found[i].scale))
        << i;
    const double unbiased = squares[i] / std::max(count() - 1, 1.0);
    const double from = vectors_[in_vector(i, kVariance)];
    ASSERT_NEAR(after[in_vector(i, kMean)], 0.9 * vectors_[in_vector(i, kMean)] + 0.1 * mean[i],
                of_mean)
        << i;
    ASSERT_NEAR(after[in_vector(i, kVariance)], 0.9 * from + 0.1 * unbiased, of_variance) << i;
    ASSERT_EQ(after[in_vector(i, kScale)], vectors_[in_vector(i, kScale)]) << i;
  }
}

TEST_P(RowNormTest, RunningStatistics) {
  const DeviceValues vectors(vectors_, NumberType::kFloat), sums = no_sums();
  const DeviceArray<NormValues> values(random_norms());
  NormStatistics s = statistics(sums, vectors, values);
  s.sums = nullptr;
  s.parts = s.rows = 0;
  check_cuda(use_running_statistics(s, nullptr), "use_running_statistics");
  const std::vector<NormValues> found = values.download(nullptr);
  for (int64_t i = 0; i < values_count(); ++i) {
    const double mean = vectors_[in_vector(i, kMean)];
    const double inverse = 1 / std::sqrt(vectors_[in_vector(i, kVariance)] + kEpsilon);
    const double scale = vectors_[in_vector(i, kScale)] * inverse;
    ASSERT_FLOAT_EQ(found[i].mean, static_cast<float>(mean)) << i;
    ASSERT_FLOAT_EQ(found[i].inverse, static_cast<float>(inverse)) << i;
    ASSERT_FLOAT_EQ(found[i].scale, static_cast<float>(scale)) << i;
    ASSERT_NEAR(found[i].shift, vectors_[in_vector(i, kBias)] - mean * scale, 8 * kFullStep) << i;
    ASSERT_EQ(found[i].mean_dy, 0) << i;
    ASSERT_EQ(found[i].mean_product, 0) << i;
  }
  EXPECT_EQ(vectors.read(), vectors_);
}

TEST_P(RowNormTest, AppliesTheNormWithShortcutAndRelu) {
  const std::vector<NormValues> norms = random_norms();
  const DeviceArray<NormValues> values(norms);
  const DeviceValues x(x_, type()), add(add_, type()), y(Doubles(x_.size(), NAN), type());
  for (const bool all : {true, false}) {
    const NormApply a{
        shape_.clients, shape_.rows,     shape_.map(), x.data(), all ? add.data() : nullptr, all,
        values.data(),  shape_.channels, y.data()};
    check_cuda(apply_norm(precision_, a, nullptr), "apply_norm");
    const Doubles found = y.read();
    for (int64_t at = 0; at < std::ssize(found); ++at) {
      const NormValues& v = norms[shape_.place_of(at)];
      double value = v.scale * x_[at] + v.shift + (all ? add_[at] : 0);
      if (all) value = std::max(value, 0.0);
      const double bound = 8 * kFullStep + (half() ? kHalfStep * std::abs(value) : 0);
      ASSERT_NEAR(found[at], value, bound) << at;
    }
  }
}

TEST_P(RowNormTest, Gradients) {
  const DeviceValues x(x_, type()), dy(dy_, type()), sums = no_sums();
  for (const bool more : {false, true}) {  // with another gradient, in place, and a mask
    std::vector<NormValues> norms = random_norms();
    const DeviceArray<NormValues> values(norms);
    const DeviceValues gradients(Doubles(vectors_.size(), kMark), NumberType::kFloat),
        dx(more ? add_ : Doubles(x_.size(), NAN), type());
    NormGradient g = gradient(dy, sums, gradients, values, dx);
    g.x = x.data();
    if (more) {
      g.add = dx.data();
      g.mask = true;
      g.conv_bias = kConvBias * shape_.channels;
    }
    check_cuda(differentiate_norm(precision_, g, nullptr), "differentiate_norm");
    Sums of_bias(values_count()), of_scale(values_count());
    for (int64_t at = 0; at < std::ssize(x_); ++at) {
      const int64_t place = shape_.place_of(at);
      const NormValues& v = norms[place];
      of_bias.add(place, dy_[at]);
      of_scale.add(place, dy_[at] * (x_[at] - v.mean) * v.inverse,
                   std::abs(dy_[at]) * (std::abs(x_[at]) + std::abs(v.mean)) * v.inverse);
    }
    const Doubles after = gradients.read();
    Doubles bias, scale;
    for (int64_t i = 0; i < values_count(); ++i) {
      bias.push_back(after[in_vector(i, kBias)]);
      scale.push_back(after[in_vector(i, kScale)]);
      ASSERT_EQ(after[in_vector(i, kMean)], kMark) << i;
      ASSERT_EQ(after[in_vector(i, kConvBias)], more ? 0 : kMark) << i;
    }
    of_bias.expect(bias, kAdditions, 0);
    of_scale.expect(scale, kAdditions + 4, 0);
    const std::vector<NormValues> found = values.download(nullptr);
    for (int64_t i = 0; i < values_count(); ++i) {
      const double steps = 2 * kFullStep;
      ASSERT_NEAR(found[i].mean_dy, bias[i] / count(), steps) << i;
      ASSERT_NEAR(found[i].mean_product, scale[i] / count(), steps) << i;
    }
    expect_gradient(dx.read(), found, more, more);
  }
}

TEST_P(RowNormTest, GradientsInModeAnswers) {
  const DeviceValues x(x_, type()), dy(dy_, type()), add(add_, type()), sums = no_sums();
  std::vector<NormValues> norms = random_norms();
  for (NormValues& v : norms) v.mean_dy = v.mean_product = 0;
  const DeviceArray<NormValues> values(norms);
  for (const bool more : {false, true}) {
    const DeviceValues gradients(Doubles(vectors_.size(), kMark), NumberType::kFloat),
        dx(Doubles(x_.size(), NAN), type());
    NormGradient g = gradient(dy, sums, gradients, values, dx);
    g.x = x.data();
    g.answers = true;
    g.add = more ? add.data() : nullptr;
    g.mask = more;
    g.conv_bias = kConvBias * shape_.channels;
    check_cuda(differentiate_norm(precision_, g, nullptr), "differentiate_norm");
    expect_gradient(dx.read(), norms, more, more);
    EXPECT_EQ(gradients.read(), Doubles(vectors_.size(), kMark));
  }
}

TEST_P(RowNormTest, GradientOfABiasAlone) {
  const DeviceValues dy(dy_, type()), sums = no_sums(), dx(Doubles(1, kMark), type());
  const DeviceArray<NormValues> values(random_norms());
  const DeviceValues gradients(Doubles(vectors_.size(), kMark), NumberType::kFloat);
  NormGradient g = gradient(dy, sums, gradients, values, dx);
  g.weights.bias = kConvBias * shape_.channels;
  check_cuda(differentiate_norm(precision_, g, nullptr), "differentiate_norm");
  Sums expected(values_count());
  for (int64_t at = 0; at < std::ssize(dy_); ++at) expected.add(shape_.place_of(at), dy_[at]);
  Doubles found;
  const Doubles after = gradients.read();
  for (int64_t i = 0; i < values_count(); ++i) {
    found.push_back(after[in_vector(i, kConvBias)]);
    ASSERT_EQ(after[in_vector(i, kScale)], kMark) << i;
    ASSERT_EQ(after[in_vector(i, kBias)], kMark) << i;
  }
  expected.expect(found, kAdditions, 0);
}

TEST_P(RowNormTest, AClientsBitsDependOnNothingElse) {
  const DeviceValues x(x_, type()), dy(dy_, type());
  const auto run = [&](int clients, int first) {
    const int64_t begin = first * shape_.client_size(), count = clients * shape_.client_size();
    const int64_t bytes = begin * (half() ? 2 : 4);
    const DeviceValues vectors(vectors_, NumberType::kFloat),
        sums = no_sums(), y(Doubles(count, NAN), type()), dx(Doubles(count, NAN), type()),
        gradients(Doubles(vectors_.size(), NAN), NumberType::kFloat);
    const DeviceArray<NormValues> values(values_count());
    const void* from = static_cast<const uint8_t*>(x.data()) + bytes;
    const MapSums sum{clients, shape_.rows, shape_.map(), from, sums.floats()};
    check_cuda(sum_map(precision_, sum, nullptr), "sum_map");
    NormStatistics s = statistics(sums, vectors, values);
    s.clients = clients;
    s.weights.vectors += int64_t{first} * vector_size();
    check_cuda(compute_statistics(s, nullptr), "compute_statistics");
    const NormApply a{clients, shape_.rows,   shape_.map(),    from,    nullptr,
                      false,   values.data(), shape_.channels, y.data()};
    check_cuda(apply_norm(precision_, a, nullptr), "apply_norm");
    NormGradient g = gradient(dy, sums, gradients, values, dx);
    g.clients = clients;
    g.x = from;
    g.dy = static_cast<const uint8_t*>(dy.data()) + bytes;
    check_cuda(differentiate_norm(precision_, g, nullptr), "differentiate_norm");
    Doubles all = y.read();
    const Doubles gradient = dx.read();
    all.insert(all.end(), gradient.begin(), gradient.end());
    return all;
  };
  const Doubles together = run(shape_.clients, 0);
  const int64_t size = shape_.client_size();
  for (int client = 0; client < shape_.clients; ++client) {
    const Doubles alone = run(1, client);
    for (const int64_t kind : {0, 1}) {
      const auto from = together.begin() + (kind * shape_.clients + client) * size;
      EXPECT_TRUE(std::equal(from, from + size, alone.begin() + kind * size)) << client;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, RowNormTest,
                         testing::Combine(testing::ValuesIn(kShapes),
                                          testing::Values(Precision::kBfloat16,
                                                          Precision::kFloat32)));

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(RowNormTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
