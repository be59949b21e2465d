#include "fedsmooth/smoothing/conformal.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <random>

#include "fedsmooth/base/error.h"
#include "tests/refusal.h"
#include "tests/smoothing/classifiers.h"

namespace fedsmooth {
namespace {

constexpr double kSigma = 0.25;

long double phi(long double z) { return std::erfc(-z / std::sqrt(2.0L)) / 2; }

TEST(ConformalTest, LevelIsTheClosedFormRoundedUp) {
  const long double z = 1.28155156554460046697L;  // Phi^-1(.9)
  for (const double ratio : {0.0, 0.25, 1.0, 2.0, 4.0}) {
    const double level = conformal_level(0.9, ratio * kSigma, kSigma, kFloatNoise);
    EXPECT_GE(level, phi(z + ratio)) << ratio;
    EXPECT_LE(level, phi(z + ratio) + 1e-11) << ratio;
  }
  // sigma rounded to fp32 is what is drawn; it is smaller than 0.3 by less than 1e-8.
  EXPECT_GT(conformal_level(0.9, 0.3, 0.3, kFloatNoise), phi(z + 1));
  for (const auto& [coverage, epsilon, sigma, message] :
       {std::tuple{0.4, 0.25, 0.25, "coverage=0.4: must be at least 0.5 and below 1"},
        {1.0, 0.25, 0.25, "coverage=1: must be at least 0.5 and below 1"},
        {0.9, -0.1, 0.25, "epsilon=-0.1: must not be negative"},
        {0.9, NAN, 0.25, "epsilon=nan: must not be negative"},
        {0.9, 0.25, 0.0, "sigma=0: must be positive and at most 1e+30 with float-2 noise"},
        {0.9, 9.0, 0.25,
         "epsilon=9: is too large beside sigma=0.25 for any number of calibration images"}}) {
    EXPECT_EQ(refusal([&, c = coverage, e = epsilon, s = sigma] {
                conformal_level(c, e, s, kFloatNoise);
              }),
              message);
  }
}

TEST(ConformalTest, SigmaMustBeOneThatTheLawDraws) {
  EXPECT_EQ(refusal([] { conformal_level(0.9, 0.25, 17, kExactNoise); }),
            "sigma=17: must be positive and at most 16 with exact noise");
}

TEST(ConformalTest, NeedsTheFewestImagesWhoseRankIsAmongThem) {
  EXPECT_EQ(needed_images(conformal_level(0.9, 0.25, 0.25, kFloatNoise)), 88);
  EXPECT_EQ(needed_images(conformal_level(0.9, 0.5, 0.25, kFloatNoise)), 1937);
  for (const double level : {0.5, 0.9, 0.99, 0.999999}) {
    const int64_t n = needed_images(level);
    EXPECT_LE(conformal_rank(n, level), n);
    EXPECT_GT(conformal_rank(n - 1, level), n - 1);
    EXPECT_GE(static_cast<double>(n), std::floor(level / (1 - level))) << level;
  }
}

TEST(ConformalTest, QuantileIsTheScoreOfThatRank) {
  std::vector<double> scores;
  for (int i = 100; i > 0; --i) scores.push_back(i);
  const double level = conformal_level(0.9, 0.25, 0.25, kFloatNoise);  // .9887
  EXPECT_EQ(conformal_quantile(scores, level), 100);                   // ceil(101 * .9887)
  EXPECT_EQ(conformal_quantile(scores, 0.5), 51);
  scores.resize(87);
  EXPECT_EQ(refusal([&] { conformal_quantile(scores, level); }),
            "conformal: 87 calibration images are too few; at least 88 are needed");
}

TEST(ConformalTest, ScoresAreMinusLogSoftmax) {
  const float logits[] = {1, 3, 2};
  const double sum = std::exp(-2) + 1 + std::exp(-1);
  const std::vector<double> scores = conformal_scores(logits, 3);
  EXPECT_NEAR(scores[0], 2 + std::log(sum), 1e-15);
  EXPECT_NEAR(scores[1], std::log(sum), 1e-15);
  const float steep[] = {0, 900, 1000};  // no class is like another
  EXPECT_EQ(conformal_scores(steep, 3), (std::vector<double>{1000, 100, 0}));
  const float broken[] = {1, NAN, 2};
  EXPECT_EQ(conformal_scores(broken, 3), std::vector<double>(3, INFINITY));
}

// Coverage over `trials` calibrations with n scores each, of images that are all moved by epsilon.
// An image's score is minus its distance to a plane plus its noise; `distance` draws that.
template <typename Distance>
double moved_coverage(double epsilon, int64_t n, int trials, Distance distance) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> noise(0, kSigma);
  const double level = conformal_level(0.9, epsilon, kSigma, kFloatNoise);
  constexpr int kTests = 50;  // of each calibration
  int64_t covered = 0;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<double> scores(n);
    for (double& score : scores) score = -(distance(random) + noise(random));
    const double q = conformal_quantile(scores, level);
    for (int i = 0; i < kTests; ++i) {
      covered += -(distance(random) - epsilon + noise(random)) <= q;
    }
  }
  return static_cast<double>(covered) / (trials * kTests);
}

// The bound is sharp there. 100,000 images: a standard error of .001, and .002 by 2,000
// calibrations.
TEST(ConformalTest, CoverageOfHalfSpacesIsSharp) {
  const auto same = [](auto&) { return 0.1; };
  for (const double epsilon : {0.125, 0.25}) {
    const double coverage = moved_coverage(epsilon, 4000, 2000, same);
    EXPECT_NEAR(coverage, 0.9, 0.01) << epsilon;
    EXPECT_GE(coverage, 0.9 - 4 * 0.001) << epsilon;
  }
}

// Images whose label is covered with a probability far below and far above 1/2.
TEST(ConformalTest, CoverageOfMixturesHolds) {
  const auto mixed = [](auto& random) {
    return std::bernoulli_distribution(0.2)(random) ? -0.5 : 0.5;
  };
  const auto spread = [](auto& random) { return std::normal_distribution<double>(0, 0.5)(random); };
  for (const double epsilon : {0.125, 0.25}) {
    EXPECT_GE(moved_coverage(epsilon, 500, 2000, mixed), 0.9 - 0.004) << epsilon;
    EXPECT_GE(moved_coverage(epsilon, 500, 2000, spread), 0.9 - 0.004) << epsilon;
  }
}

const Array kOrigin = Array::full({1, 2, 2}, 0.5f);

// Scores of class 1 for images at `distance` from the boundary of a half-space.
std::vector<double> scores_at(double distance, int64_t count, uint64_t seed, int threads) {
  const BaseClassifier f = fixed_batch(half_space(4, kOrigin), 2);
  const Array x = each(kOrigin, [=](float v) { return v + static_cast<float>(distance / 2); });
  std::vector<double> scores(count);
  const std::string fingerprint = one_pass_scores(
      f, kFloatNoise, kSigma, make_key(seed, Purpose::kConformal), count,
      [&](int64_t i) -> LabelledImage {
        return {x, static_cast<uint32_t>(i), 1};
      },
      [&](int64_t i, const std::vector<double>& found) { scores[i] = found.at(1); }, threads, {});
  EXPECT_EQ(fingerprint, check_is_function(f, kOrigin.sizes()).fingerprint);
  return scores;
}

// By the classifier's own passes: calibrated at distance 0.3, moved towards the boundary by sigma.
TEST(ConformalTest, OnePassCoversMovedImages) {
  constexpr int64_t kImages = 100'000;
  const double q = conformal_quantile(scores_at(0.3, kImages, 1, 2),
                                      conformal_level(0.9, kSigma, kSigma, kFloatNoise));
  int64_t covered = 0;
  for (const double score : scores_at(0.3 - kSigma, kImages, 2, 2)) covered += score <= q;
  // Given q, coverage has a standard deviation of .002 over the calibration.
  EXPECT_NEAR(static_cast<double>(covered) / kImages, 0.9, 0.01);
}

TEST(ConformalTest, AnImagesScoreDependsOnItsIndexAlone) {
  const std::vector<double> whole = scores_at(0.1, 500, 1, 1);
  EXPECT_EQ(scores_at(0.1, 500, 1, 3), whole);
  const std::vector<double> part = scores_at(0.1, 70, 1, 1);
  EXPECT_EQ(part, std::vector<double>(whole.begin(), whole.begin() + 70));
  EXPECT_NE(scores_at(0.1, 70, 2, 1), part);
}

TEST(ConformalTest, AClassifierThatChangesIsRefused) {
  const auto calls = std::make_shared<int>(0);
  const Classifier changing = [calls](const Array& images) {
    return Array::full({images.size(0), 2}, ++*calls <= 6 ? 0.0f : 1.0f);  // five are the check's
  };
  const BaseClassifier f = fixed_batch(changing, 2);
  const auto pass = [&] {
    one_pass_scores(
        f, kFloatNoise, kSigma, make_key(1, Purpose::kConformal), 1,
        [](int64_t) -> LabelledImage {
          return {kOrigin, 0, 1};
        },
        [](int64_t, const std::vector<double>&) {}, 1, {});
  };
  EXPECT_THROW(pass(), ClassifierChanged);
}

}  // namespace
}  // namespace fedsmooth
