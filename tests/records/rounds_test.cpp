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
      "0\t1\t\t0\t0\t0\t\t0\t1\t\t\n",     // rounds count from 1
      "1.5\t1\t\t0\t0\t0\t\t0\t1\t\t\n",   // a round in between
      "1\t1\t1.1\t0\t0\t0\t\t0\t1\t\t\n",  // accuracy above 1
      "1\t1\t\t-1\t0\t0\t\t0\t1\t\t\n",    // negative distance
      "1\t1\t\t0\t0\t2\t\t0\t1\t\t\n",     // a probability falls by 2
      "1\t1\t\t0\t0\t0\t-2\t0\t1\t\t\n",   // cosine
      "1\t1\t\t0\t0\t0\t\t-1\t1\t\t\n",    // clients
      "1\t1\t\t0\t0\t0\t\t0\t-1\t\t\n",    // seconds
      "1\t1\t\t0\t0\t0\t\t0\n",            // too short
      "1\t1\t\t0\t0\t0\t\t0\t1\tx\t\n"};   // not a number
  for (const std::string& line : impossible) {
    EXPECT_THROW(parse_rounds(round_header() + line, "r"), Error) << line;
  }
  EXPECT_EQ(parse_rounds(round_header() + "1\t1\t\t0\t0\t0\t\t0\t1\t\t\n", "r").size(), 1);
}

TEST(RoundsTest, TermsOfTheLossComeBack) {
  RoundRow row;
  row.round = 3;
  row.loss_robust = 0.25;
  const auto rows = parse_rounds(round_header() + format_round(row), "r");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].loss_robust, 0.25);
  EXPECT_EQ(rows[0].loss_entropy, std::nullopt);
}

TEST(RoundsTest, TablesOfVersion01HaveNoTerms) {
  std::string header = round_header();
  header.resize(header.find("\tloss_robust"));
  const auto rows = parse_rounds(header + "\n1\t2.5\t\t0\t0\t0\t\t0\t1\n", "r");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].loss, 2.5);
  EXPECT_EQ(rows[0].loss_robust, std::nullopt);
}

TEST(RoundsTest, AnAttackMovesImages) {
  EXPECT_FALSE(has_attack({}));
  EXPECT_FALSE(has_attack({{1, 2}, {2, 2}}));
  EXPECT_TRUE(has_attack({{1, 2}, {.round = 2, .perturbation_mean = 0.1}}));
}

}  // namespace
}  // namespace fedsmooth
