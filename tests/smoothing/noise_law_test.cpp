#include "fedsmooth/smoothing/noise_law.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/engine/samplers.h"
#include "fedsmooth/engine/threaded_sampler.h"
#include "fedsmooth/smoothing/conformal.h"
#include "fedsmooth/smoothing/plan.h"
#include "fedsmooth/smoothing/sequential.h"
#include "tests/refusal.h"
#include "tests/smoothing/classifiers.h"
#include "tests/smoothing/uniform_noise.h"

namespace fedsmooth {
namespace {

double normal_cdf(double z) { return std::erfc(-z / std::sqrt(2.0)) / 2; }

TEST(NoiseLawTest, NamesAreThoseOfTables) {
  EXPECT_EQ(kFloatNoise.name, "float-2");
  EXPECT_EQ(kCutFloatNoise.name, "float");
  EXPECT_EQ(kExactNoise.name, "exact");
  for (const NoiseLaw* law : {&kFloatNoise, &kCutFloatNoise, &kExactNoise}) {
    EXPECT_EQ(find_law(law->name), law);
  }
  EXPECT_EQ(find_law("uniform"), nullptr);
}

TEST(NoiseLawTest, OptionsNameEachLawThatIsDrawn) {
  for (const KnownLaw& known : known_laws()) {
    EXPECT_EQ(known.option.empty(), known.law.draws_at == nullptr) << known.law.name;
    if (known.option.empty()) continue;
    EXPECT_EQ(&law_of_option(known.option), &known.law);
    EXPECT_EQ(option_of_law(known.law), known.option);
  }
  EXPECT_EQ(list_laws(), "float-2, float, exact");
  EXPECT_EQ(refusal([] { law_of_option("cut"); }), "noise=\"cut\": must be float or exact");
  EXPECT_EQ(refusal([] { option_of_law(kCutFloatNoise); }),
            "noise=float: no option names this law");
  EXPECT_EQ(refusal([] { option_of_law(kUniformNoise); }),
            "noise=uniform: no option names this law");
}

TEST(NoiseLawTest, GaussianNoiseCertifiesInL2) {
  for (const NoiseLaw* law : {&kFloatNoise, &kCutFloatNoise, &kExactNoise}) {
    EXPECT_EQ(law->norm, Norm::kL2);
    // In fp32 0.5 is itself.
    EXPECT_NEAR(law->radius(0.5, normal_cdf(1.0)), 0.5, 1e-12);
    EXPECT_NEAR(law->radius_between(0.5, normal_cdf(1.0), normal_cdf(-2.0)), 0.75, 1e-12);
    EXPECT_NEAR(law->needed_probability(0.5, 0.75), normal_cdf(1.5), 1e-12);
  }
}

TEST(NoiseLawTest, SigmaIsThatOfTheDraws) {
  const double above = std::nextafter(0.25, 1.0);  // rounds down to 0.25 in fp32
  EXPECT_EQ(kFloatNoise.radius(above, 0.9), kFloatNoise.radius(0.25, 0.9));
  const double below = std::nextafter(0.25, 0.0);  // rounds up
  EXPECT_LT(kFloatNoise.radius(below, 0.9), kFloatNoise.radius(0.25, 0.9));
}

TEST(NoiseLawTest, NothingIsCertifiedWhereNoClassIsAhead) {
  EXPECT_EQ(kFloatNoise.radius(0.5, 0.5), 0.0);
  EXPECT_EQ(kFloatNoise.radius_between(0.5, 0.4, 0.4), 0.0);
  EXPECT_EQ(kFloatNoise.radius_between(0.5, 0.3, 0.4), 0.0);
}

TEST(NoiseLawTest, ARadiusNeedsWhatItSays) {
  for (const double radius : {0.01, 0.25, 0.5, 1.0, 1.5}) {
    const double p = kFloatNoise.needed_probability(0.25, radius);
    EXPECT_GE(p, normal_cdf(radius / 0.25) * (1 - 1e-14));
    EXPECT_LE(kFloatNoise.radius(0.25, p - 1e-9), radius);
    EXPECT_NEAR(kFloatNoise.radius(0.25, p), radius, 1e-9 * radius / (1 - p));
  }
}

TEST(NoiseLawTest, ALawOfOlderTablesIsNotDrawn) {
  const BaseClassifier f = fixed_batch(constant_class(0, 2), 2);
  const std::string refused = refusal([&] { make_sampler(f, kCutFloatNoise, 1); });
  EXPECT_NE(refused.find("noise=float: only older tables have it"), std::string::npos) << refused;
  EXPECT_EQ(&drawn_today(kCutFloatNoise), &kFloatNoise);
  EXPECT_EQ(&drawn_today(kExactNoise), &kExactNoise);
}

// A law that nothing in the library knows, from the draws to the radius.

constexpr double kSigma = 0.5, kDistance = 0.2;

// Answers 1 above 1/2 of the first pixel; the image is kDistance above.
BaseClassifier half_space_of_first_pixel() {
  return fixed_batch(by_score([](Pixels pixels) { return pixels[0] - 0.5f; }), 2);
}
const Array kImage = Array::of({1, 1, 2}, {0.5f + static_cast<float>(kDistance), 0.5f});

TEST(PlantedLawTest, CpuSamplersDrawIt) {
  const VoteRequest request = {kImage, kSigma, 20'000, {make_key(1, Purpose::kEstimation)}};
  SerialSampler serial(half_space_of_first_pixel(), kUniformNoise);
  const Votes votes = serial.count(request);
  // P[1] = 1/2 + distance / (2 sigma) = 0.7, where Gaussian noise gives 0.655.
  EXPECT_NEAR(static_cast<double>(votes[1]) / 20'000, 0.7, 4.5 * std::sqrt(0.7 * 0.3 / 20'000));
  ThreadedSampler threaded(half_space_of_first_pixel(), kUniformNoise, 3);
  EXPECT_EQ(threaded.count(request), votes);
}

TEST(PlantedLawTest, CertificatesHaveItsRadius) {
  const auto sampler = make_sampler(half_space_of_first_pixel(), kUniformNoise, 2);
  EXPECT_EQ(&sampler->law(), &kUniformNoise);
  for (const RadiusKind radius : {RadiusKind::kOneSided, RadiusKind::kMulticlass}) {
    const CertifyOptions o = {.n = 50'000, .radius = radius};
    const Certificate c = certify(*sampler, kImage, kSigma, o, 1, 0);
    EXPECT_EQ(c.predict, 1);
    EXPECT_LE(c.radius, kDistance);
    EXPECT_GT(c.radius, 0.9 * kDistance);
    EXPECT_EQ(certify_all(*sampler, {{kImage, 0}}, kSigma, o, 1)[0].radius, c.radius);
  }
}

TEST(PlantedLawTest, GivenRadiiAreDecidedByIt) {
  const auto sampler = make_sampler(half_space_of_first_pixel(), kUniformNoise, 1);
  const CertifyOptions o = {.n = 20'000, .radii = {0.1, 0.15, 0.25}};
  const Certificate c = certify(*sampler, kImage, kSigma, o, 1, 0);
  EXPECT_EQ(c.radius, 0.15);
  EXPECT_EQ(c.p_lower, 0.65);
  EXPECT_TRUE(
      latches_hold(c.counts, c.latches, ladder_of(o.radii), kSigma, o.alpha, kUniformNoise));
  // No probability certifies a radius of sigma or more under it; Gaussian noise could.
  const CertifyOptions beyond = {.radii = {0.6}};
  check_certify_options(beyond, kSigma, kFloatNoise);
  EXPECT_EQ(refusal([&] { check_certify_options(beyond, kSigma, kUniformNoise); }),
            "radii: 0.6 cannot be certified by 100000 votes with sigma=0.5 at alpha=0.001");
}

// The number of votes is planned for the radius that the law gives.
TEST(PlantedLawTest, VotesArePlannedForItsRadius) {
  const CertifyOptions o = {.n = 100'000, .plan = 0.05};
  const Counts pilot = {1, 1000, 999, 1};
  const int64_t uniform = VotePlanner(o, kSigma, kUniformNoise).votes_for(pilot);
  EXPECT_LT(uniform, VotePlanner(o, kSigma, kFloatNoise).votes_for(pilot));
  const auto sampler = make_sampler(half_space_of_first_pixel(), kUniformNoise, 1);
  const Array far = Array::of({1, 1, 2}, {1.0f, 0.5f});  // all votes are for one class
  EXPECT_EQ(certify(*sampler, far, kSigma, o, 1, 0).counts.n,
            VotePlanner(o, kSigma, kUniformNoise).votes_for({1, 1000, 1000, 0}));
}

TEST(PlantedLawTest, OptionsAreCheckedAgainstIt) {
  EXPECT_EQ(refusal([] { check_certify_options(CertifyOptions{}, 5, kUniformNoise); }),
            "sigma=5: must be positive and at most 4 with uniform noise");
  EXPECT_EQ(refusal([] { check_predict_options(1000, 0.001, 5, kUniformNoise); }),
            "sigma=5: must be positive and at most 4 with uniform noise");
  check_predict_options(1000, 0.001, 5, kFloatNoise);
  EXPECT_EQ(refusal([] { check_certify_options(CertifyOptions{}, 17, kExactNoise); }),
            "sigma=17: must be positive and at most 16 with exact noise");
}

// The level of conformal sets is a statement about the law, and no other law's may take its place.
TEST(PlantedLawTest, ConformalSetsAreRefusedWithoutItsLevel) {
  EXPECT_EQ(refusal([] { conformal_level(0.9, 0.1, kSigma, kUniformNoise); }),
            "noise=uniform: conformal sets are not known for this law; choose another noise");
  // Under uniform noise a shift by epsilon in l1 moves at most epsilon / (2 sigma) of the mass.
  NoiseLaw knowing = kUniformNoise;
  knowing.shifted_level = [](double sigma, double p, double epsilon) {
    return p + epsilon / (2 * sigma);
  };
  EXPECT_EQ(conformal_level(0.75, 0.125, kSigma, knowing), 0.875);
}

// What an engine counts votes with must be the law that was asked for.
TEST(PlantedLawTest, AnEngineThatDrawsAnotherIsFound) {
  BaseClassifier f = half_space_of_first_pixel();
  f.sampler = [f](const NoiseLaw&, const Stop&) {
    return std::make_unique<SerialSampler>(f, kFloatNoise);
  };
  EXPECT_THROW(make_sampler(f, kUniformNoise, 1), Bug);
  EXPECT_EQ(&make_sampler(f, kFloatNoise, 1)->law(), &kFloatNoise);
}

}  // namespace
}  // namespace fedsmooth
