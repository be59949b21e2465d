#include <gtest/gtest.h>

#include <cmath>

#include "fedsmooth/report/facts.h"

namespace fedsmooth {
namespace {

using Strings = std::vector<std::string>;

// Ten rounds of which the first half has no attack yet.
RunRecord attacked(double mean, double p95, double drop) {
  RunRecord run{"run"};
  for (int64_t i = 1; i <= 5; ++i) run.rounds.push_back({i, 2.3});
  for (int64_t i = 6; i <= 10; ++i) run.rounds.push_back({i, 2.3, {}, mean, p95, drop});
  return run;
}

// `count` correct certificates at radius 0.5, of which attacks break the first `broken` at 0.4.
RunRecord contradicted(int64_t count, int64_t broken) {
  RunRecord run{"run"};
  for (int64_t i = 0; i < count; ++i) {
    CertificateRow row;
    row.noise = &kFloatNoise;
    row.index = i;
    row.label = i % 2;
    row.alpha = 0.001;
    row.certificate.predict = i % 2;
    row.certificate.radius = 0.5;
    run.rows.push_back(row);
    run.attacks.push_back({i, i % 2, 0.4, i < broken ? 7 : i % 2, 0.4});
  }
  return run;
}

TEST(WarningsTest, AnAttackThatWorksIsFine) {
  EXPECT_EQ(list_warnings(attacked(0.98, 1, 0.2)), Strings{});
  EXPECT_EQ(list_warnings(attacked(0, 0, 0)), Strings{});  // none
}

TEST(WarningsTest, AnAttackWithoutEffectIsVacuous) {
  EXPECT_EQ(list_warnings(attacked(0.98, 1, 0.0004)),
            Strings{"The attack in training is vacuous: it moves images by 0.98 epsilon, to no "
                    "effect."});
  EXPECT_EQ(list_warnings(attacked(0.98, 1, -0.01)).size(), 1);
}

TEST(WarningsTest, AnAttackThatStaysNearTakesSmallSteps) {
  EXPECT_EQ(list_warnings(attacked(0.04, 0.05, 0.001)),
            Strings{"The attack in training reaches 0.04 epsilon only; its steps are too small."});
}

TEST(WarningsTest, AnAttackOnAFewImagesFindsNoGradient) {
  EXPECT_EQ(
      list_warnings(attacked(0.1, 1, 0.001)),
      Strings{"The attack in training leaves most images as they are; their gradient is zero."});
}

TEST(WarningsTest, DivergedTelemetryIsNoVacuousAttack) {
  const double nan = std::nan("");
  RunRecord run = attacked(0.98, 1, 0.2);
  run.rounds.push_back({11, nan, {}, nan, nan, nan, {}, 3});
  EXPECT_EQ(list_warnings(run),
            Strings{"3 updates in 1 of 11 rounds were dropped: not finite or too large."});
}

TEST(WarningsTest, CountsImagesMisledWithinTheirRadius) {
  EXPECT_EQ(list_warnings(contradicted(100, 0)), Strings{});
  EXPECT_EQ(
      list_warnings(contradicted(100, 3)),
      Strings{"Attacks misled 3 of 100 images within their radius, or had a narrow majority."});
}

TEST(WarningsTest, EverySentenceFitsIntoTheTable) {
  RunRecord run = contradicted(12'345, 12'345);
  for (const double drop : {0.0, 1.0}) {
    for (const double mean : {1e-9, 0.3333, 0.9876543}) {
      for (const double p95 : {1e-9, 1.0}) {
        run.rounds = attacked(mean, p95, drop).rounds;
        for (RoundRow& row : run.rounds) row.dropped = 99'999'999;
        for (const std::string& warning : list_warnings(run)) EXPECT_LE(warning.size(), 88);
      }
    }
  }
}

}  // namespace
}  // namespace fedsmooth
