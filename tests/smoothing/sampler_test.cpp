#include "fedsmooth/smoothing/sampler.h"

#include <gtest/gtest.h>

#include <numeric>

#include "fedsmooth/base/error.h"
#include "fedsmooth/smoothing/noise.h"
#include "tests/smoothing/classifiers.h"

namespace fedsmooth {
namespace {

const Tensor kImage = at::full({1, 2, 2}, 0.5);

// Ten classes by the first pixel, so that a vote tells which noise it saw.
Classifier by_first_pixel() {
  return [](const Tensor& images) {
    const Tensor bin = images.flatten(1).select(1, 0).sub(0.5).mul(4).add(5).clamp(0, 9).floor();
    return at::one_hot(bin.to(at::kLong), 10).to(at::kFloat);
  };
}

Votes count(const Classifier& f, int64_t classes, int64_t batch, int64_t n) {
  SerialSampler sampler(fixed_batch(f, classes, batch));
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
  for (const double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    const Classifier f = [bad](const Tensor& images) {
      Tensor logits = at::zeros({images.size(0), 3});
      logits.select(1, 1).fill_(1);
      logits.select(1, 2).masked_fill_(images.flatten(1).select(1, 0).gt(0.5), bad);
      return logits;
    };
    const Votes votes = count(f, 3, 64, 1000);
    const Votes expected = count(
        [](const Tensor& images) {
          const Tensor above = images.flatten(1).select(1, 0).gt(0.5);
          return at::one_hot(above.to(at::kLong), 2).to(at::kFloat);
        },
        2, 64, 1000);
    EXPECT_EQ(votes[1], expected[0]);
    EXPECT_EQ(votes[0] + votes[2], 0);
  }
}

TEST(SamplerTest, TiesGoToTheLowestClass) {
  const Votes votes = count([](const Tensor& x) { return at::zeros({x.size(0), 4}); }, 4, 16, 100);
  EXPECT_EQ(votes, (Votes{100, 0, 0, 0}));
}

TEST(SamplerTest, NoiseIsAddedToThePixelsAndNotClipped) {
  Tensor noisy = at::zeros({4, 1, 2, 2});
  const Stream stream{Key{9}, 2};
  add_noise(kImage, 0.5, stream, 10, 4, noisy);
  for (int64_t i = 0; i < 4; ++i) {
    float z[4];
    fill_normal(stream, static_cast<uint32_t>(10 + i), z, 4);
    for (int64_t j = 0; j < 4; ++j) {
      EXPECT_EQ(noisy[i].flatten()[j].item<float>(), 0.5f + 0.5f * z[j]);
    }
  }
  Tensor many = at::zeros({1000, 1, 2, 2});
  add_noise(kImage, 0.5, stream, 0, 1000, many);
  EXPECT_LT(many.min().item<double>(), -0.5);
  EXPECT_GT(many.max().item<double>(), 1.5);
}

// The first four moments of the noise, which training shares: five standard deviations each.
TEST(SamplerTest, NoiseHasTheLawThatIsCertified) {
  Tensor noisy = at::zeros({20'000, 1, 2, 2});
  add_noise(kImage, 0.25, {make_key(0, Purpose::kEstimation)}, 0, 20'000, noisy);
  const Tensor z = (noisy - kImage).div(0.25).to(at::kDouble);
  const double n = static_cast<double>(z.numel());
  EXPECT_NEAR(z.mean().item<double>(), 0, 5 / std::sqrt(n));
  EXPECT_NEAR(z.pow(2).mean().item<double>(), 1, 5 * std::sqrt(2 / n));
  EXPECT_NEAR(z.pow(3).mean().item<double>(), 0, 5 * std::sqrt(15 / n));
  EXPECT_NEAR(z.pow(4).mean().item<double>(), 3, 5 * std::sqrt(96 / n));
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
  double calls = 0;
  const Classifier f = [calls](const Tensor& x) mutable {
    return at::full({x.size(0), 2}, ++calls);
  };
  EXPECT_NE(refusal(f, 2).find("asked again"), std::string::npos);
}

TEST(SamplerTest, AnswersByPositionAreRefused) {
  const Classifier f = [](const Tensor& x) {
    return x.flatten(1).narrow(1, 0, 2) + at::arange(x.size(0)).unsqueeze(1);
  };
  EXPECT_NE(refusal(f, 2).find("position"), std::string::npos);
}

TEST(SamplerTest, AnswersByNeighboursAreRefused) {
  const Classifier f = [](const Tensor& x) {
    return x.flatten(1).narrow(1, 0, 2) + x.to(at::kDouble).amax();
  };
  EXPECT_NE(refusal(f, 2).find("other images"), std::string::npos);
}

// Batch statistics change with the order too, by rounding; the last image stands for them here. The
// message must be about the statistics.
TEST(SamplerTest, AnswersByNeighboursAndOrderAreRefusedForTheNeighbours) {
  const Classifier f = [](const Tensor& x) {
    return x.flatten(1).narrow(1, 0, 2) + x[-1].flatten()[0];
  };
  EXPECT_NE(refusal(f, 2).find("other images"), std::string::npos);
}

TEST(SamplerTest, AWrongNumberOfOutputsIsRefused) {
  EXPECT_NE(refusal(constant_class(0, 3), 10).find("expected [32, 10]"), std::string::npos);
}

}  // namespace
}  // namespace fedsmooth
