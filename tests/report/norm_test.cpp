#include "fedsmooth/report/norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

TEST(NormTest, RadiiFollowFromTheBallInsideTheBall) {
  EXPECT_EQ(radius_in(Norm::kL2, 0.7, 4), 0.7);
  EXPECT_EQ(radius_in(Norm::kL1, 0.7, 4), 0.7);
  EXPECT_NEAR(radius_in(Norm::kLinf, 0.7, 4), 0.35, 1e-15);
  EXPECT_NEAR(radius_in(Norm::kLinf, 0.953, 3072), 0.953 / std::sqrt(3072.0), 1e-17);
  EXPECT_EQ(radius_in(Norm::kLinf, 0, 3072), 0);
}

// The corner of the l_inf ball must not leave the l2 ball: r_inf^2 d <= r^2, in exact arithmetic as
// far as 64 bits of mantissa are that for numbers of 53 with room for the product's error.
TEST(NormTest, LinfIsRoundedDown) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const double radius = std::ldexp(1 + static_cast<double>(random() >> 12) * 0x1p-52, -2);
    const auto values = static_cast<int64_t>(1 + random() % 150'000);
    const long double inside = radius_in(Norm::kLinf, radius, values);
    const long double square = inside * inside * static_cast<long double>(values);
    ASSERT_LT(square, static_cast<long double>(radius) * radius) << radius << " " << values;
    ASSERT_GT(square, static_cast<long double>(radius) * radius * (1 - 2e-15L));
  }
}

TEST(NormTest, NamesAndSteps) {
  for (const Norm norm : {Norm::kL2, Norm::kLinf, Norm::kL1}) {
    EXPECT_EQ(parse_norm(std::string(norm_name(norm))), norm);
  }
  EXPECT_THROW(parse_norm("l3"), Error);
  EXPECT_EQ(format_step(Norm::kL2, 0.25), "0.25");
  EXPECT_EQ(format_step(Norm::kLinf, 2.0 / 255), "2/255");
  EXPECT_EQ(format_step(Norm::kLinf, 0), "0");
  EXPECT_EQ(format_mean(Norm::kL1, 0.4174), "0.417");
  EXPECT_EQ(format_mean(Norm::kLinf, 0.007528), "0.00753");
}

}  // namespace
}  // namespace fedsmooth
