#include "fedsmooth/smoothing/certify.h"

#include <gtest/gtest.h>

#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <numeric>
#include <random>

#include "fedsmooth/base/error.h"
#include "fedsmooth/smoothing/statistics.h"
#include "tests/smoothing/classifiers.h"

namespace fedsmooth {
namespace {

constexpr double kSigma = 0.25;
const Array kOrigin = Array::full({1, 2, 2}, 0.5f);

// The image at `distance` from the boundary of half_space(4, kOrigin), on the side of class 1.
Array image_at(double distance) {
  return each(kOrigin, [=](float v) { return v + static_cast<float>(distance / 2); });
}

Certificate certify_at(double distance, const CertifyOptions& options, uint64_t seed,
                       const Classifier& f = half_space(4, kOrigin)) {
  SerialSampler sampler(fixed_batch(f, 2), kFloatNoise);
  return certify(sampler, image_at(distance), kSigma, options, seed, 0);
}

TEST(CertifyTest, RadiusApproachesTheDistanceFromBelow) {
  double last_gap = 1.0;
  for (const int64_t n : {100, 1000, 10'000, 100'000}) {
    const Certificate c = certify_at(0.3, {.n = n}, 1);
    EXPECT_EQ(c.predict, 1);
    EXPECT_LE(c.radius, 0.3);
    EXPECT_LT(0.3 - c.radius, last_gap) << n;
    last_gap = 0.3 - c.radius;
  }
  // At n = 100,000 the bound is z_0.001 = 3.09 standard deviations below the estimate, plus up to
  // another 4 by chance: 0.25 * 7 * sqrt(p (1 - p) / n) / phi(1.2) with p = Phi(1.2).
  EXPECT_LT(last_gap, 0.0092);
}

TEST(CertifyTest, NormalisationChangesNoRadius) {
  for (const uint64_t seed : {1, 2, 3}) {
    const Certificate plain = certify_at(0.3, {.n = 2000}, seed);
    const Certificate normalised =
        certify_at(0.3, {.n = 2000}, seed, normalized_half_space(4, kOrigin));
    // The same noise; a vote may differ only where rounding moves a score across zero.
    EXPECT_NEAR(static_cast<double>(plain.counts.top), static_cast<double>(normalised.counts.top),
                1);
  }
}

TEST(CertifyTest, AbstainsOnTheBoundary) {
  const Certificate c = certify_at(0.0, {.n = 1000}, 1);
  EXPECT_EQ(c.predict, kAbstain);
  EXPECT_EQ(c.radius, 0.0);
  EXPECT_NE(c.counts.selected, kAbstain);
}

// The guarantee itself: over many keys, a radius beyond the true distance is as rare as alpha says.
// Each run fails with probability at most 0.1: mean at most 100, standard deviation 9.5.
TEST(CertifyTest, OverstatesTheRadiusNoMoreOftenThanAlpha) {
  for (const Classifier& f : {half_space(4, kOrigin), normalized_half_space(4, kOrigin)}) {
    int overstated = 0;
    for (uint64_t seed = 0; seed < 1000; ++seed) {
      const Certificate c = certify_at(0.1, {.n0 = 20, .n = 200, .alpha = 0.1}, seed, f);
      overstated += c.predict == 0 || c.radius > 0.1;
    }
    EXPECT_LE(overstated, 100 + 4 * 9.5);
    EXPECT_GE(overstated, 20);  // or the test would not see a doubled alpha
  }
}

// Moving x towards the boundary by less than the radius does not change g; by more than the
// distance it does.
TEST(CertifyTest, NothingWithinTheRadiusChangesTheAnswer) {
  const Certificate c = certify_at(0.3, {.n = 10'000}, 1);
  EXPECT_GT(c.radius, 0.27);
  SerialSampler sampler(fixed_batch(half_space(4, kOrigin), 2), kFloatNoise);
  const auto g = [&](double distance) {
    return predict(sampler, image_at(distance), kSigma, 100'000, 0.001, 2, 0).predict;
  };
  EXPECT_EQ(g(0.3 - c.radius * (1 - 1e-6)), c.predict);
  EXPECT_EQ(g(-0.01), 0);
}

// Three half-spaces meeting at one point: class c wins where its direction points most. Along the
// ray of class 0 both others are equally far, at the distance of the bisecting planes.
Classifier three_sectors(const Array& origin) {
  const float up = std::sqrt(0.75f);
  return image_by_image(3, [=](Pixels pixels, float* logits) {
    const float x = pixels[0] - origin.floats()[0], y = pixels[1] - origin.floats()[1];
    logits[0] = x;
    logits[1] = -0.5f * x + up * y;
    logits[2] = -0.5f * x - up * y;
  });
}

TEST(CertifyTest, MulticlassRadiusIsValidAndAtLeastAsLargeHere) {
  const Array origin = Array::full({1, 1, 2}, 0.3f);
  SerialSampler sampler(fixed_batch(three_sectors(origin), 3), kFloatNoise);
  const double ray = 0.2;
  Array x = origin.clone();
  x.floats()[0] += static_cast<float>(ray);
  const double distance = ray * std::sin(M_PI / 3);  // to the planes at 60 degrees
  int overstated = 0, larger = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    CertifyOptions o = {.n0 = 20, .n = 400, .alpha = 0.1};
    const Certificate one_sided = certify(sampler, x, kSigma, o, seed, 0);
    o.radius = RadiusKind::kMulticlass;
    const Certificate multiclass = certify(sampler, x, kSigma, o, seed, 0);
    overstated +=
        (multiclass.predict != 0 && multiclass.predict != kAbstain) || multiclass.radius > distance;
    larger += multiclass.radius > one_sided.radius;
  }
  EXPECT_LE(overstated, 50 + 4 * std::sqrt(500 * 0.1 * 0.9));
  EXPECT_GT(larger, 250);
}

// The wrong rule, taking the runner-up from the selection draws, overstates here in a quarter of
// the trials; ours must not. Votes are drawn directly: p = (.45, .28, .27), true radius from p.
TEST(CertifyTest, MulticlassHoldsWhenTheRunnerUpIsUnclear) {
  std::mt19937_64 generator(1);
  const boost::math::normal_distribution<> normal;
  const double truth = kSigma / 2 * (quantile(normal, 0.45) - quantile(normal, 0.28));
  int overstated = 0;
  constexpr int kTrials = 20'000;
  for (int i = 0; i < kTrials; ++i) {
    const int64_t n = 1000;
    const int64_t a = std::binomial_distribution<int64_t>(n, 0.45)(generator);
    const int64_t b = std::binomial_distribution<int64_t>(n - a, 0.28 / 0.55)(generator);
    const Counts counts = {0, n, a, std::max(b, n - a - b)};
    overstated +=
        certificate_from_counts(counts, kSigma, 0.05, RadiusKind::kMulticlass, kFloatNoise).radius >
        truth;
  }
  EXPECT_LE(overstated, kTrials * 0.05 + 5 * std::sqrt(kTrials * 0.05 * 0.95));
}

TEST(CertifyTest, MulticlassCertifiesWhereOneSidedAbstains) {
  const Counts counts = {2, 10'000, 4500, 1000};
  EXPECT_EQ(
      certificate_from_counts(counts, kSigma, 0.001, RadiusKind::kOneSided, kFloatNoise).predict,
      kAbstain);
  const Certificate c =
      certificate_from_counts(counts, kSigma, 0.001, RadiusKind::kMulticlass, kFloatNoise);
  EXPECT_EQ(c.predict, 2);
  EXPECT_GT(c.radius, 0.1);
}

TEST(CertifyTest, MulticlassAbstainsOnATie) {
  EXPECT_EQ(certificate_from_counts({0, 1000, 500, 500}, kSigma, 0.001, RadiusKind::kMulticlass,
                                    kFloatNoise)
                .predict,
            kAbstain);
}

// With two classes the multi-class form adds nothing: p_upper = 1 - p_lower at alpha / 2.
TEST(CertifyTest, BothRadiiAgreeForTwoClasses) {
  const Counts counts = {0, 1000, 900, 100};
  const double multiclass =
      certificate_from_counts(counts, kSigma, 0.002, RadiusKind::kMulticlass, kFloatNoise).radius;
  const double one_sided =
      certificate_from_counts(counts, kSigma, 0.001, RadiusKind::kOneSided, kFloatNoise).radius;
  EXPECT_NEAR(multiclass, one_sided, 1e-12);
}

TEST(CertifyTest, RadiusIsSigmaTimesTheQuantile) {
  const Certificate c = certificate_from_counts({3, 100'000, 99'000, 500}, 0.5, 0.001,
                                                RadiusKind::kOneSided, kFloatNoise);
  EXPECT_EQ(c.predict, 3);
  EXPECT_NEAR(c.radius, 0.5 * 2.289999955214, 1e-12);
}

// The noise has the standard deviation float(sigma); a radius in units of a larger double would be
// too large by 1e-8 of itself.
TEST(CertifyTest, RadiusCountsTheNoiseThatWasDrawn) {
  const double sigma = 0.12;
  ASSERT_LT(static_cast<double>(static_cast<float>(sigma)), sigma);
  const Certificate c =
      certificate_from_counts({0, 1000, 1000, 0}, sigma, 0.001, RadiusKind::kOneSided, kFloatNoise);
  EXPECT_LE(c.radius,
            static_cast<double>(static_cast<float>(sigma)) * normal_quantile_above(c.p_lower));
}

TEST(CertifyTest, TheCapIsKnown) {
  const auto cap = [](double sigma) {
    return certificate_from_counts({0, 100'000, 100'000, 0}, sigma, 0.001, RadiusKind::kOneSided,
                                   kFloatNoise)
        .radius;
  };
  EXPECT_NEAR(cap(0.12), 0.4574, 5e-5);
  EXPECT_NEAR(cap(0.25), 0.9529, 5e-5);
  EXPECT_NEAR(cap(0.5), 1.9057, 5e-5);
  EXPECT_NEAR(cap(1.0), 3.8115, 5e-5);
}

// No count gives p_lower = 0.5 exactly.
TEST(CertifyTest, TheLeastBoundAboveOneHalfCertifies) {
  EXPECT_EQ(certificate_from_counts({0, 100, 66, 34}, 1, 0.001, RadiusKind::kOneSided, kFloatNoise)
                .predict,
            0);
  EXPECT_EQ(certificate_from_counts({0, 100, 65, 35}, 1, 0.001, RadiusKind::kOneSided, kFloatNoise)
                .predict,
            kAbstain);
}

TEST(CertifyTest, ANanNetworkAbstains) {
  SerialSampler sampler(fixed_batch(not_a_number(3), 3), kFloatNoise);
  const Certificate c = certify(sampler, kOrigin, kSigma, {.n = 1000}, 0, 0);
  EXPECT_EQ(c.predict, kAbstain);
  EXPECT_EQ(c.counts.top, 0);
  EXPECT_EQ(predict(sampler, kOrigin, kSigma, 1000, 0.001, 0, 0).predict, kAbstain);
}

TEST(CertifyTest, PixelsOutsideTheUnitIntervalAreRefused) {
  SerialSampler sampler(fixed_batch(constant_class(0, 2), 2), kFloatNoise);
  for (const float value : {-0.01f, 1.01f, 128.0f, NAN}) {
    EXPECT_THROW(certify(sampler, Array::full({1, 2, 2}, value), kSigma, {.n = 100}, 0, 0), Error);
  }
}

TEST(CertifyTest, SelectionAndEstimationShareNoNoise) {
  // Records the first pixel of every noisy copy it is shown.
  std::vector<float> seen;
  const Classifier spy =
      image_by_image(2, [&](Pixels pixels, float*) { seen.push_back(pixels[0]); });
  SerialSampler sampler(fixed_batch(spy, 2, 32), kFloatNoise);
  sampler.check(kOrigin.sizes());
  seen.clear();
  certify(sampler, kOrigin, kSigma, {.n0 = 32, .n = 32}, 0, 0);
  ASSERT_EQ(seen.size(), 96U);  // and the probe's
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
}

TEST(CertifyTest, PredictAnswersAndAbstainsAsTheCoinSays) {
  SerialSampler sampler(fixed_batch(half_space(4, kOrigin), 2), kFloatNoise);
  EXPECT_EQ(predict(sampler, image_at(0.3), kSigma, 1000, 0.001, 0, 0).predict, 1);
  EXPECT_EQ(predict(sampler, image_at(-0.3), kSigma, 1000, 0.001, 0, 0).predict, 0);
  EXPECT_EQ(predict(sampler, image_at(0.0), kSigma, 1000, 0.001, 0, 0).predict, kAbstain);
}

// Wrong answers of PREDICT just off the boundary, over many keys: at most alpha of them.
TEST(CertifyTest, PredictIsWrongNoMoreOftenThanAlpha) {
  SerialSampler sampler(fixed_batch(half_space(4, kOrigin), 2), kFloatNoise);
  int wrong = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    wrong += predict(sampler, image_at(0.001), kSigma, 100, 0.1, seed, 0).predict == 0;
  }
  EXPECT_LE(wrong, 100 + 4 * 9.5);
}

TEST(CertifyTest, HopelessParametersAreRefused) {
  const auto refused = [](CertifyOptions o, double sigma) {
    try {
      check_certify_options(o, sigma, kFloatNoise);
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(refused({}, 0.25), "");
  EXPECT_EQ(refused({.n = 10}, 0.25), "");
  EXPECT_NE(refused({.n = 9}, 0.25).find("at least 10"), std::string::npos);
  EXPECT_NE(refused({.n = 10, .radius = RadiusKind::kMulticlass}, 0.25).find("at least 11"),
            std::string::npos);
  EXPECT_NE(refused({.n0 = 0}, 0.25), "");
  EXPECT_NE(refused({.n = -1}, 0.25), "");
  EXPECT_NE(refused({.n = (int64_t{1} << 32) + 1}, 0.25), "");
  for (const double alpha : {0.0, 1.0, -0.1, static_cast<double>(NAN)}) {
    EXPECT_NE(refused({.alpha = alpha}, 0.25), "") << alpha;
  }
  for (const double sigma : {0.0, -0.25, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    EXPECT_NE(refused({}, sigma), "") << sigma;
  }
  EXPECT_THROW(check_predict_options(10, 0.001, 0.25, kFloatNoise), Error);
  EXPECT_NO_THROW(check_predict_options(11, 0.001, 0.25, kFloatNoise));
}

// The guards: no caller can pass them by.

// Answers class 0, and class 1 from the `calls`-th batch on.
Classifier changing_after(int64_t calls) {
  auto seen = std::make_shared<int64_t>(0);
  return [=](const Array& images) { return constant_class(++*seen > calls ? 1 : 0, 2)(images); };
}

TEST(CertifyTest, AClassifierThatIsNoFunctionIsRefusedWhoeverAsks) {
  // The logits depend on the other images of the batch.
  const Classifier by_neighbours = [](const Array& images) {
    const std::vector<float> all = values_of(images);
    const float mean = std::accumulate(all.begin(), all.end(), 0.0f) / std::ssize(all);
    return by_score([=](Pixels pixels) {
      return std::accumulate(pixels.begin(), pixels.end(), -mean);
    })(images);
  };
  SerialSampler sampler(fixed_batch(by_neighbours, 2), kFloatNoise);
  EXPECT_THROW(certify(sampler, kOrigin, 0.25, {}, 0, 0), Error);
  EXPECT_THROW(predict(sampler, kOrigin, 0.25, 100, 0.001, 0, 0), Error);
}

TEST(CertifyTest, AClassifierThatChangesGivesNoCertificates) {
  // 5 batches for the check, 1 for selection, 2 for estimation.
  const CertifyOptions options = {.n0 = 64, .n = 128, .alpha = 0.01};
  for (const int64_t calls : {5, 6, 7, 8}) {
    SerialSampler sampler(fixed_batch(changing_after(calls), 2), kFloatNoise);
    EXPECT_THROW(certify(sampler, kOrigin, 0.25, options, 0, 0), ClassifierChanged) << calls;
  }
  SerialSampler sampler(fixed_batch(changing_after(9), 2), kFloatNoise);  // the probe is the ninth
  EXPECT_EQ(certify(sampler, kOrigin, 0.25, options, 0, 0).predict, 0);
  EXPECT_THROW(certify(sampler, kOrigin, 0.25, options, 0, 1), ClassifierChanged);
}

// certify() is the text, certify_all() the form that samplers answer faster.
TEST(CertifyTest, ManyImagesAtOnceAreCertifiedAsEachAlone) {
  SerialSampler sampler(fixed_batch(half_space(4, kOrigin), 2), kFloatNoise);
  std::vector<LabelledImage> images;
  for (const uint32_t index : {7, 3, 12, 0}) images.push_back({image_at(0.02 * index), index, 1});
  CertifyOptions o = {.n0 = 20, .n = 400};
  for (const RadiusKind radius : {RadiusKind::kOneSided, RadiusKind::kMulticlass}) {
    o.radius = radius;
    const std::vector<Certificate> together = certify_all(sampler, images, kSigma, o, 5);
    for (size_t i = 0; i < images.size(); ++i) {
      const Certificate alone = certify(sampler, images[i].x, kSigma, o, 5, images[i].index);
      EXPECT_EQ(together[i].counts.selected, alone.counts.selected) << i;
      EXPECT_EQ(together[i].counts.top, alone.counts.top) << i;
      EXPECT_EQ(together[i].counts.runner_up, alone.counts.runner_up) << i;
      EXPECT_EQ(together[i].counts.votes, alone.counts.votes) << i;
      EXPECT_EQ(together[i].counts.selection, alone.counts.selection) << i;
      EXPECT_EQ(together[i].predict, alone.predict) << i;
      EXPECT_EQ(together[i].p_lower, alone.p_lower) << i;
      EXPECT_EQ(together[i].radius, alone.radius) << i;
    }
  }
}

TEST(CertifyTest, KeepsTheVotesOfAllClasses) {
  SerialSampler sampler(fixed_batch(half_space(4, kOrigin), 2), kFloatNoise);
  const Array x = image_at(0.1);
  const Certificate c = certify(sampler, x, kSigma, {.n0 = 20, .n = 400}, 5, 3);
  const auto votes = [&](Purpose purpose, int64_t n) {
    return tally_of(sampler.count({x, kSigma, n, {make_key(5, purpose), 3}}));
  };
  EXPECT_EQ(c.counts.selection, votes(Purpose::kSelection, 20));
  EXPECT_EQ(c.counts.votes, votes(Purpose::kEstimation, 400));
  EXPECT_EQ(total_votes(c.counts.votes), 400);

  // Those who vote for nobody are counted for nobody.
  const Classifier broken = [](const Array& images) {
    return Array::full({images.size(0), 2}, NAN);
  };
  SerialSampler none(fixed_batch(broken, 2), kFloatNoise);
  const Certificate nobody = certify(none, x, kSigma, {.n0 = 20, .n = 400}, 5, 3);
  EXPECT_TRUE(nobody.counts.votes.empty());
  EXPECT_TRUE(nobody.counts.selection.empty());
}

TEST(CertifyTest, ProbesTakeAtMostAHundredthOfTheVotes) {
  SerialSampler sampler(fixed_batch(constant_class(0, 2), 2, /*batch=*/192), kFloatNoise);
  for (const int64_t votes : {1, 100, 1000, 19'199, 19'200, 1'000'000}) {
    const int64_t images = images_per_wave(sampler, votes);
    EXPECT_LE(100 * 192, images * votes) << votes;
    EXPECT_GT(100 * 192 + votes, images * votes - votes) << votes;
  }
  EXPECT_EQ(images_per_wave(sampler, 19'200), 1);
}

}  // namespace
}  // namespace fedsmooth
