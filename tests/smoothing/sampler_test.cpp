#include "fedsmooth/smoothing/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "fedsmooth/base/error.h"
#include "fedsmooth/smoothing/noise.h"
#include "tests/smoothing/classifiers.h"

namespace fedsmooth {
namespace {

const Array kImage = Array::full({1, 2, 2}, 0.5f);

// Ten classes by the first pixel, so that a vote shows which noise it saw.
Classifier by_first_pixel() {
  return image_by_image(10, [](Pixels pixels, float* logits) {
    const float bin = std::clamp((pixels[0] - 0.5f) * 4 + 5, 0.0f, 9.0f);
    logits[static_cast<int>(bin)] = 1;
  });
}

Votes count(const Classifier& f, int64_t classes, int64_t batch, int64_t n) {
  SerialSampler sampler(fixed_batch(f, classes, batch), kFloatNoise);
  return sampler.count({kImage, 0.5, n, {make_key(1, Purpose::kEstimation), 3}});
}

TEST(SamplerTest, EveryCopyVotesOnce) {
  for (const int64_t n : {1, 7, 64, 65, 1000}) {
    const Votes votes = count(by_first_pixel(), 10, 64, n);
    EXPECT_EQ(std::accumulate(votes.begin(), votes.end(), int64_t{0}), n);
  }
}

TEST(SamplerTest, VotesDoNotDependOnTheBatch) {
  const Votes expected = count(by_first_pixel(), 10, 1, 500);
  for (const int64_t batch : {2, 64, 333, 1000}) {
    EXPECT_EQ(count(by_first_pixel(), 10, batch, 500), expected) << batch;
  }
}

TEST(SamplerTest, MoreVotesBeginWithTheFewer) {
  const Votes few = count(by_first_pixel(), 10, 64, 100),
              many = count(by_first_pixel(), 10, 64, 300);
  for (int c = 0; c < 10; ++c) EXPECT_LE(few[c], many[c]);
}

TEST(SamplerTest, CopiesThatAreNotFiniteVoteForNobody) {
  // NaN in the losing class only, and infinity in the winning one.
  for (const float bad : {NAN, INFINITY}) {
    const Classifier f = image_by_image(3, [bad](Pixels pixels, float* logits) {
      logits[1] = 1;
      if (pixels[0] > 0.5f) logits[2] = bad;
    });
    const Votes votes = count(f, 3, 64, 1000);
    const Classifier above =
        image_by_image(2, [](Pixels pixels, float* logits) { logits[pixels[0] > 0.5f] = 1; });
    const Votes expected = count(above, 2, 64, 1000);
    EXPECT_EQ(votes[1], expected[0]);
    EXPECT_EQ(votes[0] + votes[2], 0);
  }
}

TEST(SamplerTest, TiesGoToTheLowestClass) {
  const Votes votes = count([](const Array& x) { return Array({x.size(0), 4}); }, 4, 16, 100);
  EXPECT_EQ(votes, (Votes{100, 0, 0, 0}));
}

TEST(SamplerTest, NoiseIsAddedToThePixelsAndNotClipped) {
  Array noisy({4, 1, 2, 2});
  const Stream stream{Key{9}, 2};
  add_noise(kImage, 0.5, stream, 10, 4, noisy);
  for (int64_t i = 0; i < 4; ++i) {
    float z[4];
    fill_normal(stream, static_cast<uint32_t>(10 + i), z, 4);
    for (int64_t j = 0; j < 4; ++j) {
      EXPECT_EQ(pixels_of(noisy, i)[j], 0.5f + 0.5f * z[j]);
    }
  }
  Array many({1000, 1, 2, 2});
  add_noise(kImage, 0.5, stream, 0, 1000, many);
  const std::vector<float> values = values_of(many);
  EXPECT_LT(*std::min_element(values.begin(), values.end()), -0.5);
  EXPECT_GT(*std::max_element(values.begin(), values.end()), 1.5);
}

// The first four moments of the noise, which training shares: five standard deviations each.
TEST(SamplerTest, NoiseHasTheLawThatIsCertified) {
  Array noisy({20'000, 1, 2, 2});
  add_noise(kImage, 0.25, {make_key(0, Purpose::kEstimation)}, 0, 20'000, noisy);
  const double n = static_cast<double>(noisy.count());
  std::array<double, 5> moments = {};
  for (const float value : values_of(noisy)) {
    const double z = (value - 0.5) / 0.25;
    for (int k = 1; k <= 4; ++k) moments[k] += std::pow(z, k) / n;
  }
  EXPECT_NEAR(moments[1], 0, 5 / std::sqrt(n));
  EXPECT_NEAR(moments[2], 1, 5 * std::sqrt(2 / n));
  EXPECT_NEAR(moments[3], 0, 5 * std::sqrt(15 / n));
  EXPECT_NEAR(moments[4], 3, 5 * std::sqrt(96 / n));
}

std::string refusal(const Classifier& f, int64_t classes) {
  try {
    check_is_function(fixed_batch(f, classes, 32), {1, 2, 2});
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(SamplerTest, AFunctionPassesTheCheck) {
  EXPECT_EQ(refusal(by_first_pixel(), 10), "");
  EXPECT_EQ(refusal(not_a_number(3), 3), "");
}

TEST(SamplerTest, RandomAnswersAreRefused) {
  float calls = 0;
  const Classifier f = [calls](const Array& x) mutable {
    return Array::full({x.size(0), 2}, ++calls);
  };
  EXPECT_NE(refusal(f, 2).find("asked again"), std::string::npos);
}

// The first two pixels and what `add` says of the image's place in the batch.
Classifier pixels_and(const std::function<float(const Array& images, int64_t place)>& add) {
  return [=](const Array& images) {
    Array logits({images.size(0), 2});
    for (int64_t i = 0; i < logits.count(); ++i) {
      logits.floats()[i] = pixels_of(images, i / 2)[i % 2] + add(images, i / 2);
    }
    return logits;
  };
}

TEST(SamplerTest, AnswersByPositionAreRefused) {
  const Classifier f =
      pixels_and([](const Array&, int64_t place) { return static_cast<float>(place); });
  EXPECT_NE(refusal(f, 2).find("position"), std::string::npos);
}

TEST(SamplerTest, AnswersByNeighboursAreRefused) {
  const Classifier f = pixels_and([](const Array& images, int64_t) {
    return *std::max_element(images.floats(), images.floats() + images.count());
  });
  EXPECT_NE(refusal(f, 2).find("other images"), std::string::npos);
}

// Batch statistics change with the order too, by rounding; the last image stands for them here. The
// message must be about the statistics.
TEST(SamplerTest, AnswersByNeighboursAndOrderAreRefusedForTheNeighbours) {
  const Classifier f = pixels_and(
      [](const Array& images, int64_t) { return pixels_of(images, images.size(0) - 1)[0]; });
  EXPECT_NE(refusal(f, 2).find("other images"), std::string::npos);
}

TEST(SamplerTest, AWrongNumberOfOutputsIsRefused) {
  EXPECT_NE(refusal(constant_class(0, 3), 10).find("expected [32, 10]"), std::string::npos);
}

}  // namespace
}  // namespace fedsmooth
