#include "fedsmooth/attack/smooth_adv.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fedsmooth/base/random.h"

namespace fedsmooth {
namespace {

constexpr double kSigma = 0.25;

Tensor noise_for(int64_t batch, int64_t m, at::IntArrayRef shape, uint64_t seed) {
  Tensor noise = at::empty({batch, m, shape[0], shape[1], shape[2]});
  fill_normal({Key{seed}}, 0, noise.data_ptr<float>(), noise.numel());
  return noise.mul_(kSigma);
}

// A smooth network: two linear layers with a softplus between, on 12 inputs, 3 classes.
Classifier tiny_network(at::ScalarType type = at::kFloat) {
  const auto weights = [&](int64_t rows, int64_t columns, uint64_t seed) {
    Tensor w = at::empty({rows, columns});
    fill_normal({Key{seed}}, 0, w.data_ptr<float>(), w.numel());
    return w.to(type);
  };
  const Tensor a = weights(12, 8, 1), b = weights(8, 3, 2);
  return [a, b](const Tensor& x) { return at::softplus(x.flatten(1).mm(a)).mm(b); };
}

TEST(SmoothAdvTest, StochasticGradientIsThatOfFiniteDifferences) {
  const Classifier f = tiny_network(at::kDouble);
  const Tensor x = at::full({2, 3, 2, 2}, 0.5, at::kDouble);
  const Tensor y = at::tensor({0, 2}, at::kLong);
  const Tensor noise = noise_for(2, 4, {3, 2, 2}, 3).to(at::kDouble);
  const auto loss = [&](const Tensor& at_x) {
    return -true_class_probability(f, at_x, y, noise).mean(1).log();  // [B]
  };
  const Tensor g = stochastic_gradient(f, x, y, noise).flatten(1);
  constexpr double kStep = 1e-5;
  for (int64_t i = 0; i < 12; ++i) {
    Tensor up = x.clone(), down = x.clone();
    up.flatten(1).select(1, i).add_(kStep);
    down.flatten(1).select(1, i).sub_(kStep);
    const Tensor slope = (loss(up) - loss(down)) / (2 * kStep);
    // Central differences are exact to the third derivative times step^2: below 1e-8 here.
    EXPECT_LT((slope - g.select(1, i)).abs().max().item<double>(), 1e-7) << i;
  }
}

// F(z) = Phi((w.(z - c)) / s) for class 1, a soft half-space. With noise G(x) = Phi(d / sqrt(s^2 +
// sigma^2)) for distance d, so its gradient is phi(d / r) / r along w, r^2 = s^2 + sigma^2.
constexpr double kWidth = 0.1;
Classifier soft_half_space() {
  return [](const Tensor& x) {
    const Tensor distance = x.flatten(1).sub(0.5).sum(1) / 2;  // w = (1, 1, 1, 1) / 2
    const Tensor p = at::special_ndtr(distance / kWidth).clamp(1e-30, 1);
    return at::stack({(1 - p).clamp_min(1e-30).log(), p.log()}, 1);
  };
}

double exact_slope(double distance) {
  const double r = std::sqrt(kWidth * kWidth + kSigma * kSigma), z = distance / r;
  return std::exp(-z * z / 2) / std::sqrt(2 * M_PI) / r;
}

// Mean and standard error of the slope along w over many images at the same point.
std::pair<double, double> slope_of(bool two_point, double distance, double& spread) {
  constexpr int64_t kImages = 4000, kNoises = 8;
  const Tensor x = at::full({kImages, 1, 2, 2}, 0.5 + distance / 2);
  const Tensor y = at::ones({kImages}, at::kLong);
  const Tensor noise = noise_for(kImages, kNoises, {1, 2, 2}, 5);
  const Tensor g = two_point ? two_point_gradient(soft_half_space(), x, y, noise, kSigma)
                             : one_point_gradient(soft_half_space(), x, y, noise, kSigma);
  // The direction of ascent of J is that of descent of G_y.
  const Tensor along = -g.flatten(1).sum(1).to(at::kDouble) / 2;
  spread = along.std().item<double>();
  return {along.mean().item<double>(), spread / std::sqrt(static_cast<double>(kImages))};
}

TEST(SmoothAdvTest, GradientFreeEstimatorsHaveTheRightMean) {
  for (const double distance : {-0.2, 0.0, 0.3}) {
    for (const bool two_point : {false, true}) {
      double spread = 0;
      const auto [mean, error] = slope_of(two_point, distance, spread);
      EXPECT_NEAR(mean, exact_slope(distance), 5 * error) << distance << " " << two_point;
    }
  }
}

TEST(SmoothAdvTest, TwoPointHasLessVarianceWhereTheClassIsSure) {
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
  Tensor x = at::empty({16, 3, 2, 2});
  fill_uniform({Key{9}}, 0, x.data_ptr<float>(), x.numel());
  const Tensor y = at::arange(16).remainder(3);
  for (const double epsilon : {0.1, 0.5, 2.0}) {
    AttackOptions o{c.estimator, 5, epsilon, c.step_size, c.normalize};
    const Tensor x_adv =
        smooth_adv(tiny_network(), x, y, noise_for(16, 4, {3, 2, 2}, 4), kSigma, o);
    EXPECT_LE(l2_norm(x_adv - x).max().item<double>(), epsilon * (1 + 1e-6));
    EXPECT_GE(x_adv.min().item<double>(), -1e-7);
    EXPECT_LE(x_adv.max().item<double>(), 1 + 1e-7);
    EXPECT_FALSE(x_adv.requires_grad());
  }
}

INSTANTIATE_TEST_SUITE_P(All, SmoothAdvCaseTest,
                         ::testing::Values(AttackCase{Estimator::kStochastic, 0, true},
                                           AttackCase{Estimator::kStochastic, 0.01, false},
                                           AttackCase{Estimator::kStochastic, 100, true},
                                           AttackCase{Estimator::kOnePoint, 0, true},
                                           AttackCase{Estimator::kTwoPoint, 0, true}));

TEST(SmoothAdvTest, LowersTheTrueClassMoreWithMoreRoom) {
  const Classifier f = tiny_network();
  const Tensor x = at::full({32, 3, 2, 2}, 0.5);
  const Tensor y = at::arange(32).remainder(3);
  const Tensor noise = noise_for(32, 8, {3, 2, 2}, 6);
  double last = true_class_probability(f, x, y, noise).mean().item<double>();
  for (const double epsilon : {0.05, 0.2, 0.8}) {
    AttackOptions o;
    o.epsilon = epsilon;
    const Tensor x_adv = smooth_adv(f, x, y, noise, kSigma, o);
    const double attacked = true_class_probability(f, x_adv, y, noise).mean().item<double>();
    EXPECT_LT(attacked, last) << epsilon;
    last = attacked;
  }
}

TEST(SmoothAdvTest, TheLiteralStepReachesAFractionOfTheBall) {
  AttackOptions o;
  o.step_size = 0.01;  // the paper's inner learning rate, read literally
  const Tensor x = at::full({8, 3, 2, 2}, 0.5);
  const Tensor x_adv = smooth_adv(tiny_network(), x, at::zeros({8}, at::kLong),
                                  noise_for(8, 2, {3, 2, 2}, 7), kSigma, o);
  EXPECT_LE(l2_norm(x_adv - x).max().item<double>(), 0.02 + 1e-6);
}

TEST(SmoothAdvTest, AFlatNetworkLeavesTheImageAlone) {
  const Classifier flat = [](const Tensor& x) { return at::zeros({x.size(0), 3}) + 0 * x.sum(); };
  const Tensor x = at::full({2, 3, 2, 2}, 0.5);
  const Tensor x_adv =
      smooth_adv(flat, x, at::zeros({2}, at::kLong), noise_for(2, 2, {3, 2, 2}, 8), kSigma, {});
  EXPECT_TRUE(at::equal(x_adv, x));
}

}  // namespace
}  // namespace fedsmooth
