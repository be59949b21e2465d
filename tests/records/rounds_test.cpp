#include "fedsmooth/records/rounds.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

std::vector<RoundRow> read_back(const RoundRow& row) {
  return parse_rounds(round_header() + format_round(row), "rounds.tsv");
}

TEST(RoundsTest, RowsReadBack) {
  const RoundRow row{7, 1.25, 0.5, 0.75, 1, -0.125, 0.25, 3, 2.5};
  const auto rows = read_back(row);
  ASSERT_EQ(rows.size(), 1);
  EXPECT_EQ(rows[0].round, 7);
  EXPECT_EQ(rows[0].loss, 1.25);
  EXPECT_EQ(rows[0].noisy_accuracy, 0.5);
  EXPECT_EQ(rows[0].perturbation_mean, 0.75);
  EXPECT_EQ(rows[0].perturbation_p95, 1);
  EXPECT_EQ(rows[0].probability_drop, -0.125);
  EXPECT_EQ(rows[0].gradient_cosine, 0.25);
  EXPECT_EQ(rows[0].dropped, 3);
  EXPECT_EQ(rows[0].seconds, 2.5);
}

TEST(RoundsTest, WhatWasNotMeasuredStaysEmpty) {
  const auto rows = read_back({1, 2});
  ASSERT_EQ(rows.size(), 1);
  EXPECT_FALSE(rows[0].noisy_accuracy);
  EXPECT_FALSE(rows[0].gradient_cosine);
}

TEST(RoundsTest, ARoundThatDivergedReadsBack) {
  const double nan = std::nan("");
  const auto rows = read_back({1, nan, {}, nan, HUGE_VAL, nan, nan, 2, 1});
  ASSERT_EQ(rows.size(), 1);
  EXPECT_TRUE(std::isnan(rows[0].loss));
  EXPECT_TRUE(std::isnan(rows[0].perturbation_mean));
  EXPECT_TRUE(std::isnan(rows[0].perturbation_p95));
  EXPECT_TRUE(std::isnan(rows[0].probability_drop));
  EXPECT_FALSE(rows[0].gradient_cosine);
  EXPECT_EQ(rows[0].dropped, 2);
}

TEST(RoundsTest, RefusesImpossibleValues) {
  const std::vector<std::string> impossible = {
      "0\t1\t\t0\t0\t0\t\t0\t1\n",     // rounds count from 1
      "1.5\t1\t\t0\t0\t0\t\t0\t1\n",   // a round in between
      "1\t1\t1.1\t0\t0\t0\t\t0\t1\n",  // accuracy above 1
      "1\t1\t\t-1\t0\t0\t\t0\t1\n",    // negative distance
      "1\t1\t\t0\t0\t2\t\t0\t1\n",     // a probability falls by 2
      "1\t1\t\t0\t0\t0\t-2\t0\t1\n",   // cosine
      "1\t1\t\t0\t0\t0\t\t-1\t1\n",    // clients
      "1\t1\t\t0\t0\t0\t\t0\t-1\n",    // seconds
      "1\t1\t\t0\t0\t0\t\t0\n"};
  for (const std::string& line : impossible) {
    EXPECT_THROW(parse_rounds(round_header() + line, "r"), Error) << line;
  }
  EXPECT_EQ(parse_rounds(round_header() + "1\t1\t\t0\t0\t0\t\t0\t1\n", "r").size(), 1);
}

TEST(RoundsTest, AnAttackMovesImages) {
  EXPECT_FALSE(has_attack({}));
  EXPECT_FALSE(has_attack({{1, 2}, {2, 2}}));
  EXPECT_TRUE(has_attack({{1, 2}, {.round = 2, .perturbation_mean = 0.1}}));
}

}  // namespace
}  // namespace fedsmooth
