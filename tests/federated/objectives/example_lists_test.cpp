// The lists of examples that objectives make beside SmoothAdv's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "fedsmooth/federated/local_step.h"
#include "fedsmooth/federated/objectives/smooth_mix.h"
#include "tests/arrays.h"
#include "tests/federated/small_training.h"

namespace fedsmooth {
namespace {

constexpr int64_t kNoises = 2;
constexpr int64_t kSize = 3 * 32 * 32;

class ExampleListsTest : public testing::Test {
 protected:
  ExampleListsTest() { passes_->load(start().global); }

  Examples list(Method method, double sigma = 0.25, double progress = 0) {
    LocalTask task = small_task(method);
    task.smoothing = {sigma, kNoises};
    task.progress = progress;
    task.teacher = Array::full({shapes().size(), 10}, 0.1f);
    const Streams streams{task.seed, 2, 3};
    LocalStep step{task, *passes_, streams, 1, telemetry_};
    b_ = load_batch(task, {5, 6, 7}, streams.of(Purpose::kAugment, 1));
    delta_ = draw_noise(b_.x, kNoises, sigma, streams.of(Purpose::kTraining, 1));
    return objective_of(method).list(step, b_, delta_);
  }

  // Row `copy` of image j, less the image.
  std::vector<double> noise_in(const Examples& list, int64_t j, int64_t copy) const {
    std::vector<double> noise(kSize);
    const float* row = list.rows.floats() + (j * list.copies + copy) * kSize;
    for (int64_t i = 0; i < kSize; ++i) noise[i] = double{row[i]} - b_.x.floats()[j * kSize + i];
    return noise;
  }

  static double length(const std::vector<double>& v) {
    double sum = 0;
    for (const double x : v) sum += x * x;
    return std::sqrt(sum);
  }

  static double mean(const std::vector<double>& v) {
    double sum = 0;
    for (const double x : v) sum += x;
    return sum / static_cast<double>(v.size());
  }

  // Of the drawn noises.
  std::vector<double> drawn(int64_t j, int64_t i) const {
    const float* from = delta_.floats() + (j * kNoises + i) * kSize;
    return {from, from + kSize};
  }

  const std::unique_ptr<Passes> passes_ = reference_passes(small_network());
  Telemetry telemetry_;
  Batch b_;
  Array delta_;
};

TEST_F(ExampleListsTest, StabilityHasTheImageFirst) {
  const Examples found = list(Method::kStability);
  EXPECT_EQ(found.copies, 1 + kNoises);
  for (int64_t j = 0; j < 3; ++j) {
    EXPECT_EQ(length(noise_in(found, j, 0)), 0);
    for (int64_t i = 0; i < kNoises; ++i) {
      EXPECT_NEAR(length(noise_in(found, j, 1 + i)), length(drawn(j, i)), 1e-4);
    }
  }
}

TEST_F(ExampleListsTest, SmoothMixGoesPartOfTheWay) {
  const Examples found = list(Method::kSmoothMix);
  EXPECT_EQ(found.copies, 2 * kNoises);
  std::set<double> mixes(found.mix.begin(), found.mix.end());
  EXPECT_EQ(mixes.size(), 3U);
  for (int64_t j = 0; j < 3; ++j) {
    EXPECT_GE(found.mix[j], 0);
    EXPECT_LT(found.mix[j], 0.5);
    const std::vector<double> a = noise_in(found, j, 0), mixed = noise_in(found, j, kNoises);
    std::vector<double> way(kSize);
    for (int64_t i = 0; i < kSize; ++i) way[i] = mixed[i] - a[i];
    // Four steps of 0.5 lead at most 2 away.
    EXPECT_GT(length(way), 0);
    EXPECT_LE(length(way), 2 * found.mix[j] + 1e-4);
  }
}

TEST_F(ExampleListsTest, SmoothMixMovesTheImageItselfForLargeSigma) {
  const Examples late = list(Method::kSmoothMix, 0.5, 0.5);
  for (int64_t j = 0; j < 3; ++j) {
    const std::vector<double> noise = noise_in(late, j, 0), plain = drawn(j, 0);
    std::vector<double> moved(kSize);
    for (int64_t i = 0; i < kSize; ++i) moved[i] = noise[i] - plain[i];
    EXPECT_GT(length(moved), 0.5);
    EXPECT_LE(length(moved), 1 + 1e-4);
  }
}

TEST_F(ExampleListsTest, CatRsKeepsMeanAndRootMeanSquareOfEachNoise) {
  const Examples found = list(Method::kCatRs);
  EXPECT_EQ(found.copies, 2 * kNoises);
  EXPECT_EQ(found.draws.size(), 3U);
  for (int64_t j = 0; j < 3; ++j) {
    for (int64_t i = 0; i < kNoises; ++i) {
      const std::vector<double> delta = drawn(j, i), moved = noise_in(found, j, kNoises + i);
      EXPECT_NEAR(mean(moved), mean(delta), 1e-5);
      // The formula scales what is left after the mean is taken out by the ratio of whole root mean
      // squares; a mean of sigma / sqrt(3072) makes that a difference of 2e-4.
      EXPECT_NEAR(length(moved) / length(delta), 1, 1e-3);
      std::vector<double> way(kSize);
      for (int64_t v = 0; v < kSize; ++v) way[v] = moved[v] - delta[v];
      EXPECT_GT(length(way), 0.1);
      EXPECT_LT(length(way), 1.1);
    }
  }
}

TEST_F(ExampleListsTest, SunMovesNoisesAtTheirLengthWhenItIsLate) {
  const Examples early = list(Method::kSun);
  EXPECT_TRUE(same_bits(early.rows, noisy_copies(b_.x, delta_)));
  const Examples late = list(Method::kSun, 0.25, 0.5);
  const Array logits = passes_->forward(noisy_copies(b_.x, delta_), std::nullopt);
  for (int64_t j = 0; j < 3; ++j) {
    for (int64_t i = 0; i < kNoises; ++i) {
      const float* z = logits.floats() + (j * kNoises + i) * 10;
      const bool right = std::max_element(z, z + 10) - z == b_.y[j];
      const std::vector<double> delta = drawn(j, i), moved = noise_in(late, j, i);
      std::vector<double> way(kSize);
      for (int64_t v = 0; v < kSize; ++v) way[v] = moved[v] - delta[v];
      EXPECT_NEAR(length(moved), length(delta), 1e-3);
      // What is wrong as it was drawn stays.
      if (right) {
        EXPECT_GT(length(way), 0.1);
      } else {
        EXPECT_LT(length(way), 1e-4);
      }
    }
  }
}

// 4,000 draws of three images by weights 0, 1, 3: the last one's share is 3/4 within 5 standard
// deviations of 0.007.
TEST_F(ExampleListsTest, SunDrawsImagesByTheirWeights) {
  LocalTask task = small_task(Method::kSun);
  task.local = {.steps = 500, .batch = 8};
  const std::vector<int64_t> images = {7, 30, 31};
  EXPECT_EQ(choose_images(task, images, 3, 2), shuffle_images(images, 4000, task.seed, 3, 2));
  task.progress = 0.5;
  task.image_weights = Array({shapes().size()});
  EXPECT_EQ(choose_images(task, images, 3, 2), shuffle_images(images, 4000, task.seed, 3, 2));
  task.image_weights.floats()[30] = 1;
  task.image_weights.floats()[31] = 3;
  const std::vector<int64_t> chosen = choose_images(task, images, 3, 2);
  ASSERT_EQ(chosen.size(), 4000U);
  EXPECT_EQ(std::count(chosen.begin(), chosen.end(), 7), 0);
  const auto last = static_cast<double>(std::count(chosen.begin(), chosen.end(), 31));
  EXPECT_NEAR(last / 4000, 0.75, 0.035);
  EXPECT_EQ(choose_images(task, images, 3, 2), chosen);
  EXPECT_NE(choose_images(task, images, 4, 2), chosen);
}

// Phi^-1 of the largest p with P[Binomial(16, p) >= right] <= 0.1, for at least 12 right votes: for
// 16, p = 0.1^(1/16).
TEST_F(ExampleListsTest, SunWeighsImagesByVotesAndDropsThoseThatFewGetRight) {
  LocalTask task = small_task(Method::kSun);
  std::vector<std::pair<int64_t, int64_t>> asked;
  const RightVotes votes = [&](const std::vector<int64_t>& images, int64_t first, int64_t count) {
    asked.emplace_back(first, count);
    std::vector<int64_t> right;
    for (const int64_t i : images) {
      // Image 0: just too few of 100; 1: just enough, then 3 of 16; the others all.
      right.push_back(count == 100 ? (i == 0 ? 49 : i == 1 ? 50 : 100) : (i == 1 ? 3 : count));
    }
    return right;
  };
  const auto weigh = objective_of(Method::kSun).weigh;
  const Array first = weigh(task, votes, {});
  EXPECT_EQ(asked, (std::vector<std::pair<int64_t, int64_t>>{{0, 100}, {100, 16}}));
  EXPECT_EQ(first.sizes(), Sizes{shapes().size()});
  EXPECT_EQ(first.floats()[0], 0);
  EXPECT_NEAR(std::erfc(-first.floats()[5] / std::sqrt(2.0)) / 2, std::pow(0.1, 1.0 / 16), 1e-6);
  const double p = std::erfc(-first.floats()[1] / std::sqrt(2.0)) / 2;
  double above = 0;  // P[Binomial(16, p) >= 12]
  for (int k = 12; k <= 16; ++k) {
    above += std::exp(std::lgamma(17) - std::lgamma(k + 1) - std::lgamma(17 - k)) * std::pow(p, k) *
             std::pow(1 - p, 16 - k);
  }
  EXPECT_NEAR(above, 0.1, 1e-5);
  // Renewed: what was dropped stays so, whatever its votes.
  const Array second = weigh(task, votes, first);
  EXPECT_EQ(asked.size(), 3U);
  EXPECT_TRUE(same_bits(second, first));
}

TEST_F(ExampleListsTest, SunRenewsItsWeightsEveryTenEpochs) {
  LocalTask task = small_task(Method::kSun);
  const auto table = [&](double epoch) {
    task.progress = epoch / 150;
    return objective_of(Method::kSun).table(task);
  };
  EXPECT_EQ(table(59.9), std::nullopt);
  EXPECT_EQ(table(60.01), 0);
  EXPECT_EQ(table(69.9), 0);
  EXPECT_EQ(table(70.01), 1);
  EXPECT_EQ(table(149), 8);
  task.smoothing.sigma = 0.5;
  EXPECT_EQ(table(69.9), std::nullopt);
  EXPECT_EQ(table(70.01), 0);
}

}  // namespace
}  // namespace fedsmooth
