#include "fedsmooth/report/page/chart.h"

#include <gtest/gtest.h>

#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

// 80% up to radius 0, 60% up to 0.5, 20% up to 1.
Curve example(const std::string& label) { return {label, {{0, 0.8}, {0.5, 0.6}, {1, 0.2}}, {}}; }

// The plot is 648 wide for radius 1.03, and 318 high for 90%.
TEST(ChartTest, AStepHoldsUpToItsRadius) {
  const std::string html = render_chart({example("a")});
  EXPECT_TRUE(contains(html, "d=\"M56.00,77.33V148.00H370.56V289.33H685.13V360.00\"")) << html;
  EXPECT_TRUE(contains(html, "data-radius=\"1.03\" data-percent=\"90\""));
  EXPECT_TRUE(contains(html, "<td>80.0</td><td></td>"));
}

TEST(ChartTest, EveryCurveHasARowToSwitchIt) {
  const std::string html = render_chart({example("a"), {"left out", {}, {}}, example("b")});
  EXPECT_EQ(count_of(html, "<g class=\"curve\">"), 2U);
  EXPECT_EQ(count_of(html, "<input type=\"checkbox\" checked>"), 2U);
  EXPECT_FALSE(contains(html, "left out"));
  // Colours and dashes are those of the place in the list, as in the other figures.
  EXPECT_TRUE(contains(html, "stroke: #0072B2\""));
  EXPECT_TRUE(contains(html, "stroke: #009E73; stroke-dasharray: 6 6\""));
}

TEST(ChartTest, WhatAttacksLeaveIsDrawnAndListed) {
  Curve attacked = example("a");
  attacked.attacked = {{0.25, 0.7}, {0.5, 0.65}};
  const std::string html = render_chart({attacked});
  EXPECT_TRUE(contains(html, "class=\"chart with-attacks\""));
  EXPECT_EQ(count_of(html, "<path class=\"attacked\""), 1U);
  EXPECT_FALSE(contains(render_chart({example("a")}), "with-attacks"));
}

TEST(ChartTest, NamesStayText) {
  const std::string html = render_chart({example("\"<b>'\n&")});
  EXPECT_TRUE(contains(html, "<span>&quot;&lt;b&gt;&#39; &amp;</span>"));
  EXPECT_FALSE(contains(html, "<b>"));
}

TEST(ChartTest, RefusesCurvesThatAreAllEmpty) {
  EXPECT_THROW(render_chart({{"a", {}, {}}}), Error);
  EXPECT_THROW(render_chart({}), Error);
}

}  // namespace
}  // namespace fedsmooth
