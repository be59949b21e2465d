#include "fedsmooth/smoothing/noise_law.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fedsmooth {
namespace {

constexpr NoiseKind kKinds[] = {NoiseKind::kFloat, NoiseKind::kCutFloat, NoiseKind::kExact};

double normal_cdf(double z) { return std::erfc(-z / std::sqrt(2.0)) / 2; }

TEST(NoiseLawTest, NamesAreThoseOfTables) {
  EXPECT_EQ(law_of(NoiseKind::kFloat).name, "float-2");
  EXPECT_EQ(law_of(NoiseKind::kCutFloat).name, "float");
  EXPECT_EQ(law_of(NoiseKind::kExact).name, "exact");
  for (const NoiseKind kind : kKinds) EXPECT_EQ(noise_of(law_of(kind).name), kind);
  EXPECT_EQ(noise_of("uniform"), std::nullopt);
}

TEST(NoiseLawTest, GaussianNoiseCertifiesInL2) {
  for (const NoiseKind kind : kKinds) {
    const NoiseLaw& law = law_of(kind);
    EXPECT_EQ(law.norm, Norm::kL2);
    // In fp32 0.5 is itself.
    EXPECT_NEAR(law.radius(0.5, normal_cdf(1.0)), 0.5, 1e-12);
    EXPECT_NEAR(law.radius_between(0.5, normal_cdf(1.0), normal_cdf(-2.0)), 0.75, 1e-12);
    EXPECT_NEAR(law.needed_probability(0.5, 0.75), normal_cdf(1.5), 1e-12);
  }
}

TEST(NoiseLawTest, SigmaIsThatOfTheDraws) {
  const double above = std::nextafter(0.25, 1.0);  // rounds down to 0.25 in fp32
  const NoiseLaw& law = law_of(NoiseKind::kFloat);
  EXPECT_EQ(law.radius(above, 0.9), law.radius(0.25, 0.9));
  const double below = std::nextafter(0.25, 0.0);  // rounds up
  EXPECT_LT(law.radius(below, 0.9), law.radius(0.25, 0.9));
}

TEST(NoiseLawTest, NothingIsCertifiedWhereNoClassIsAhead) {
  EXPECT_EQ(law_of(NoiseKind::kFloat).radius(0.5, 0.5), 0.0);
  EXPECT_EQ(law_of(NoiseKind::kFloat).radius_between(0.5, 0.4, 0.4), 0.0);
  EXPECT_EQ(law_of(NoiseKind::kFloat).radius_between(0.5, 0.3, 0.4), 0.0);
}

TEST(NoiseLawTest, ARadiusNeedsWhatItSays) {
  const NoiseLaw& law = law_of(NoiseKind::kFloat);
  for (const double radius : {0.01, 0.25, 0.5, 1.0, 1.5}) {
    const double p = law.needed_probability(0.25, radius);
    EXPECT_GE(p, normal_cdf(radius / 0.25) * (1 - 1e-14));
    EXPECT_LE(law.radius(0.25, p - 1e-9), radius);
    EXPECT_NEAR(law.radius(0.25, p), radius, 1e-9 * radius / (1 - p));
  }
}

}  // namespace
}  // namespace fedsmooth
