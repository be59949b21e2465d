#include "fedsmooth/report/page/accuracy_table.h"

#include <gtest/gtest.h>

namespace fedsmooth {
namespace {

// Four images of class 0 at sigma 0.25, correct with these radii; -1: an abstention.
RunRecord run_of(const std::string& name, const std::vector<double>& radii) {
  RunRecord run{name};
  for (const double radius : radii) {
    CertificateRow row;
    row.noise = &kFloatNoise;
    row.alpha = 0.001;
    row.sigma = 0.25;
    row.certificate.counts.n = 1000;
    row.certificate.predict = radius < 0 ? kAbstain : 0;
    row.certificate.radius = std::max(radius, 0.0);
    run.rows.push_back(row);
  }
  return run;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(AccuracyTableTest, HasALinePerRunAndMarksTheBest) {
  const RunRecord a = run_of("a", {0.3, 0.3, 0.1, -1}), b = run_of("b", {0.5, 0.1, 0.1, 0.1});
  const std::string table = accuracy_table({{"a", &a, "run-a"}, {"b", &b, ""}});
  EXPECT_EQ(count_of(table, "<tr>"), 3U);
  EXPECT_TRUE(contains(table, "<a href=\"#run-a\">a</a>"));
  EXPECT_TRUE(contains(table, "<th scope=\"row\">b</th><td class=\"best\">100.0<small>39.8–100.0"))
      << table;
  EXPECT_TRUE(contains(table, "<td>75.0<small>19.4–99.4</small></td><td class=\"best\">50.0"));
  // Average radii 0.175 and 0.2; abstentions have no best.
  EXPECT_TRUE(contains(table, "<td>0.175</td><td>25.0</td></tr>"));
  EXPECT_TRUE(contains(table, "<td class=\"best\">0.200</td><td>0.0</td></tr>"));
}

TEST(AccuracyTableTest, EqualValuesAreAllBestAndZerosNever) {
  const RunRecord a = run_of("a", {0.3, -1}), b = run_of("b", {0.3, -1}), none = run_of("c", {-1});
  EXPECT_EQ(count_of(accuracy_table({{"a", &a, ""}, {"b", &b, ""}}), "class=\"best\""), 6U);
  EXPECT_EQ(count_of(accuracy_table({{"c", &none, ""}, {"d", &none, ""}}), "class=\"best\""), 0U);
  EXPECT_EQ(count_of(accuracy_table({{"a", &a, ""}}), "class=\"best\""), 0U);
}

TEST(AccuracyTableTest, WhatCannotBeCertifiedIsEmpty) {
  RunRecord far = run_of("far", {0.9});
  for (CertificateRow& row : far.rows) row.sigma = 1;
  const RunRecord near = run_of("near", {0.3});
  // 1000 of 1000 votes at sigma 0.25 certify 0.615.
  EXPECT_TRUE(contains(accuracy_table({{"far", &far, ""}, {"near", &near, ""}}),
                       "<td>0.0<small>0.0–97.5</small></td><td></td>"));
}

TEST(AccuracyTableTest, LeavesOutRunsWithoutCertificates) {
  const RunRecord a = run_of("a", {0.3}), bare{"bare"};
  EXPECT_FALSE(contains(accuracy_table({{"a", &a, ""}, {"bare", &bare, ""}}), "bare"));
  EXPECT_EQ(accuracy_table({{"bare", &bare, ""}}), "");
}

TEST(AccuracyTableTest, OneRunHasALinePerRadius) {
  RunRecord run = run_of("a", {0.3, 0.3, 0.1, -1});
  EXPECT_TRUE(contains(radius_table(run),
                       "<tr><th scope=\"row\">0.25</th><td>50.0</td><td>6.8–93.2</td><td>0.0</td>"
                       "</tr>"))
      << radius_table(run);
  run.attacks = {{0, 0, 0.25, 0, 0.25}, {1, 0, 0.25, 1, 0.25}};
  // Attacked accuracy is known from the first epsilon on.
  EXPECT_EQ(count_of(radius_table(run), "<td></td></tr>"), 1U);
  EXPECT_TRUE(contains(radius_table(run), "<td>6.8–93.2</td><td>0.0</td><td>50.0</td></tr>"));
}

TEST(AccuracyTableTest, NamesStayText) {
  const RunRecord a = run_of("a", {0.3});
  const std::string table = accuracy_table({{"</table><script>\"'", &a, ""}});
  EXPECT_EQ(count_of(table, "</table>"), 1U);
  EXPECT_FALSE(contains(table, "<script"));
}

}  // namespace
}  // namespace fedsmooth
