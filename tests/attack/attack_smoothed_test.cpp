#include "fedsmooth/attack/attack_smoothed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "fedsmooth/base/random.h"
#include "tests/arrays.h"

namespace fedsmooth {
namespace {

constexpr double kSigma = 0.25;

Array noise_for(int64_t batch, int64_t m, const Sizes& shape, uint64_t seed) {
  Array noise({batch, m, shape[0], shape[1], shape[2]});
  fill_normal({Key{seed}}, 0, noise.floats(), noise.count());
  return each(noise, [](float value) { return static_cast<float>(kSigma) * value; });
}

Labels labels_up_to_two(int64_t count) {
  Labels labels;
  for (int64_t i = 0; i < count; ++i) labels.push_back(i % 3);
  return labels;
}

double mean(const Array& a) {
  double sum = 0;
  for (const float value : values_of(a)) sum += value;
  return sum / static_cast<double>(a.count());
}

double largest_step(const Array& x_adv, const Array& x) {
  Array moved = x_adv.clone();
  for (int64_t i = 0; i < moved.count(); ++i) moved.floats()[i] -= x.floats()[i];
  const std::vector<double> norms = l2_norms(moved);
  return *std::max_element(norms.begin(), norms.end());
}

// A smooth network: two linear layers with a softplus between, on 12 inputs, 3 classes. In double.
class TinyNetwork {
 public:
  static constexpr int kInputs = 12, kHidden = 8, kClasses = 3;
  using Logits = std::array<double, kClasses>;

  TinyNetwork() {
    fill_normal({Key{1}}, 0, a_.data(), kInputs * kHidden);
    fill_normal({Key{2}}, 0, b_.data(), kHidden * kClasses);
  }

  template <typename Number>
  Logits logits(const Number* x) const {
    Logits z = {};
    for (int h = 0; h < kHidden; ++h) {
      const double on = std::log1p(std::exp(hidden(x, h)));
      for (int k = 0; k < kClasses; ++k) z[k] += on * b_[h * kClasses + k];
    }
    return z;
  }

  void backward(const float* x, const float* dz, float* dx) const {
    double sums[kInputs] = {};
    for (int h = 0; h < kHidden; ++h) {
      double slope = 0;
      for (int k = 0; k < kClasses; ++k) slope += b_[h * kClasses + k] * dz[k];
      slope /= 1 + std::exp(-hidden(x, h));
      for (int i = 0; i < kInputs; ++i) sums[i] += a_[i * kHidden + h] * slope;
    }
    std::copy_n(sums, kInputs, dx);
  }

 private:
  template <typename Number>
  double hidden(const Number* x, int h) const {
    double sum = 0;
    for (int i = 0; i < kInputs; ++i) sum += x[i] * a_[i * kHidden + h];
    return sum;
  }

  std::array<float, kInputs * kHidden> a_;
  std::array<float, kHidden * kClasses> b_;
};

DifferentiableClassifier tiny_network() {
  const auto last = std::make_shared<Array>();
  const auto logits = [last, net = TinyNetwork()](const Array& x) {
    *last = x;
    Array z({x.size(0), TinyNetwork::kClasses});
    for (int64_t i = 0; i < x.size(0); ++i) {
      const TinyNetwork::Logits row = net.logits(x[i].floats());
      std::copy(row.begin(), row.end(), z[i].floats());
    }
    return z;
  };
  const auto backward = [last, net = TinyNetwork()](const Array& dz) {
    Array dx(last->sizes());
    for (int64_t i = 0; i < dx.size(0); ++i) {
      net.backward((*last)[i].floats(), dz[i].floats(), dx[i].floats());
    }
    return dx;
  };
  return {logits, backward};
}

// J = -log of the mean over the noises of the true class's probability, for one image, in double.
double exact_loss(const std::vector<double>& x, int64_t y, const Array& noise) {
  const TinyNetwork net;
  double sum = 0;
  for (int64_t i = 0; i < noise.size(0); ++i) {
    std::vector<double> noisy = x;
    for (size_t j = 0; j < x.size(); ++j) noisy[j] += noise[i].floats()[j];
    const TinyNetwork::Logits z = net.logits(noisy.data());
    sum += std::exp(z[y]) / (std::exp(z[0]) + std::exp(z[1]) + std::exp(z[2]));
  }
  return -std::log(sum / static_cast<double>(noise.size(0)));
}

TEST(AttackSmoothedTest, StochasticGradientIsThatOfFiniteDifferences) {
  const Array x = Array::full({2, 3, 2, 2}, 0.5f), noise = noise_for(2, 4, {3, 2, 2}, 3);
  const Labels y = {0, 2};
  const Array g = stochastic_gradient(tiny_network(), x, y, noise);
  EXPECT_GT(largest(g), 0.1);
  constexpr double kStep = 1e-5;
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t i = 0; i < 12; ++i) {
      std::vector<double> up(12, 0.5), down(12, 0.5);
      up[i] += kStep;
      down[i] -= kStep;
      const double slope =
          (exact_loss(up, y[b], noise[b]) - exact_loss(down, y[b], noise[b])) / (2 * kStep);
      // Central differences are exact to the third derivative times step^2: below 1e-8 here. The
      // gradient is a sum of floats of up to 4.
      EXPECT_NEAR(g[b].floats()[i], slope, 5e-7) << b << " " << i;
    }
  }
}

TEST(AttackSmoothedTest, TrueClassProbabilityIsThatOfEachCopy) {
  const Array x = Array::full({2, 3, 2, 2}, 0.5f), noise = noise_for(2, 4, {3, 2, 2}, 3);
  const Labels y = {0, 2};
  const Array p = true_class_probability(tiny_network().logits, x, y, noise);
  ASSERT_EQ(p.sizes(), (Sizes{2, 4}));
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t i = 0; i < 4; ++i) {
      const double expected =
          std::exp(-exact_loss(std::vector<double>(12, 0.5), y[b], noise[b].part(i, 1)));
      EXPECT_NEAR(p[b].floats()[i], expected, 1e-6);
    }
  }
}

// F(z) = Phi((w.(z - c)) / s) for class 1, a soft half-space. With noise G(x) = Phi(d / sqrt(s^2 +
// sigma^2)) for distance d, so its gradient is phi(d / r) / r along w, r^2 = s^2 + sigma^2.
constexpr double kWidth = 0.1;
Classifier soft_half_space() {
  return [](const Array& x) {
    Array logits({x.size(0), 2});
    for (int64_t i = 0; i < x.size(0); ++i) {
      double distance = 0;  // w = (1, 1, 1, 1) / 2
      for (const float value : values_of(x[i])) distance += (value - 0.5) / 2;
      const double z = distance / kWidth / std::sqrt(2.0);
      logits[i].floats()[0] = static_cast<float>(std::log(std::max(std::erfc(z) / 2, 1e-30)));
      logits[i].floats()[1] = static_cast<float>(std::log(std::max(std::erfc(-z) / 2, 1e-30)));
    }
    return logits;
  };
}

double exact_slope(double distance) {
  const double r = std::sqrt(kWidth * kWidth + kSigma * kSigma), z = distance / r;
  return std::exp(-z * z / 2) / std::sqrt(2 * M_PI) / r;
}

// Mean and standard error of the slope along w over many images at the same point.
std::pair<double, double> slope_of(bool two_point, double distance, double& spread) {
  constexpr int64_t kImages = 4000, kNoises = 8;
  const Array x = Array::full({kImages, 1, 2, 2}, static_cast<float>(0.5 + distance / 2));
  const Labels y(kImages, 1);
  const Array noise = noise_for(kImages, kNoises, {1, 2, 2}, 5);
  const Array g = two_point ? two_point_gradient(soft_half_space(), x, y, noise, kSigma)
                            : one_point_gradient(soft_half_space(), x, y, noise, kSigma);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < kImages; ++i) {
    double along = 0;  // the direction of ascent of J is that of descent of G_y
    for (const float value : values_of(g[i])) along -= value / 2.0;
    sum += along;
    squares += along * along;
  }
  const auto n = static_cast<double>(kImages);
  spread = std::sqrt((squares - sum * sum / n) / (n - 1));
  return {sum / n, spread / std::sqrt(n)};
}

TEST(AttackSmoothedTest, GradientFreeEstimatorsHaveTheRightMean) {
  for (const double distance : {-0.2, 0.0, 0.3}) {
    for (const bool two_point : {false, true}) {
      double spread = 0;
      const auto [mean, error] = slope_of(two_point, distance, spread);
      EXPECT_NEAR(mean, exact_slope(distance), 5 * error) << distance << " " << two_point;
    }
  }
}

TEST(AttackSmoothedTest, TwoPointHasLessVarianceWhereTheClassIsSure) {
  double one_point = 0, two_point = 0;
  slope_of(false, 0.5, one_point);
  slope_of(true, 0.5, two_point);
  EXPECT_LT(two_point, 0.5 * one_point);
}

struct AttackCase {
  Estimator estimator;
  double step_size;
  bool normalize;
};

class SmoothAdvCaseTest : public ::testing::TestWithParam<AttackCase> {};

TEST_P(SmoothAdvCaseTest, StaysInTheBallAndInTheBox) {
  const AttackCase c = GetParam();
  Array x({16, 3, 2, 2});
  fill_uniform({Key{9}}, 0, x.floats(), x.count());
  const Array before = x.clone();
  for (const double epsilon : {0.1, 0.5, 2.0}) {
    AttackOptions o{c.estimator, 5, epsilon, c.step_size, c.normalize};
    const Array x_adv = attack_smoothed(tiny_network(), x, labels_up_to_two(16),
                                        noise_for(16, 4, {3, 2, 2}, 4), kSigma, o);
    EXPECT_LE(largest_step(x_adv, x), epsilon * (1 + 1e-6));
    for (const float value : values_of(x_adv)) {
      EXPECT_GE(value, -1e-7);
      EXPECT_LE(value, 1 + 1e-7);
    }
    EXPECT_FALSE(same_bits(x_adv, x));
    EXPECT_TRUE(same_bits(x, before));
  }
}

INSTANTIATE_TEST_SUITE_P(All, SmoothAdvCaseTest,
                         ::testing::Values(AttackCase{Estimator::kStochastic, 0, true},
                                           AttackCase{Estimator::kStochastic, 0.01, false},
                                           AttackCase{Estimator::kStochastic, 100, true},
                                           AttackCase{Estimator::kOnePoint, 0, true},
                                           AttackCase{Estimator::kTwoPoint, 0, true}));

TEST(AttackSmoothedTest, LowersTheTrueClassMoreWithMoreRoom) {
  const DifferentiableClassifier f = tiny_network();
  const Array x = Array::full({32, 3, 2, 2}, 0.5f), noise = noise_for(32, 8, {3, 2, 2}, 6);
  const Labels y = labels_up_to_two(32);
  double last = mean(true_class_probability(f.logits, x, y, noise));
  for (const double epsilon : {0.05, 0.2, 0.8}) {
    AttackOptions o;
    o.epsilon = epsilon;
    const Array x_adv = attack_smoothed(f, x, y, noise, kSigma, o);
    const double attacked = mean(true_class_probability(f.logits, x_adv, y, noise));
    EXPECT_LT(attacked, last) << epsilon;
    last = attacked;
  }
}

TEST(AttackSmoothedTest, TheLiteralStepReachesAFractionOfTheBall) {
  AttackOptions o;
  o.step_size = 0.01;  // the paper's inner learning rate, read literally
  const Array x = Array::full({8, 3, 2, 2}, 0.5f);
  const Array x_adv =
      attack_smoothed(tiny_network(), x, Labels(8, 0), noise_for(8, 2, {3, 2, 2}, 7), kSigma, o);
  EXPECT_LE(largest_step(x_adv, x), 0.02 + 1e-6);
}

TEST(AttackSmoothedTest, AFlatNetworkLeavesTheImageAlone) {
  const Array x = Array::full({2, 3, 2, 2}, 0.5f);
  const DifferentiableClassifier flat = {[](const Array& images) {
                                           return Array({images.size(0), 3});
                                         },
                                         [](const Array& dz) {
                                           return Array({dz.size(0), 3, 2, 2});
                                         }};
  const Array x_adv =
      attack_smoothed(flat, x, Labels(2, 0), noise_for(2, 2, {3, 2, 2}, 8), kSigma, {});
  EXPECT_TRUE(same_bits(x_adv, x));
}

}  // namespace
}  // namespace fedsmooth
