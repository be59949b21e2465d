#include "fedsmooth/report/page/chart.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fedsmooth/base/error.h"
#include "fedsmooth/report/page/accuracy_chart.h"
#include "fedsmooth/report/page/accuracy_table.h"
#include "fedsmooth/report/page/history_chart.h"

namespace fedsmooth {
namespace {

using nlohmann::json;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

json data_of(const Chart& chart) { return json::parse(chart_json(chart)); }

// 80% up to radius 0, 60% up to 0.5, 20% up to 1.
Curve example(const std::string& label) { return {label, {{0, 0.8}, {0.5, 0.6}, {1, 0.2}}, {}}; }

// The value that the script reads off a series of certified accuracy at `radius`.
double read_until(const json& series, double radius) {
  for (size_t i = 0; i < series["x"].size(); ++i) {
    if (series["x"][i].get<double>() >= radius) return series["y"][i].get<double>();
  }
  return 0;
}

TEST(ChartTest, AStepHoldsUpToItsRadius) {
  const json series = data_of(accuracy_chart({example("a")}))["plots"][0]["series"][0];
  EXPECT_EQ(series["kind"], "until");
  EXPECT_EQ(series["x"], json({0.0, 0.5, 1.0}));
  EXPECT_EQ(series["y"], json({80.0, 60.0, 20.0}));
  const std::string html = render_chart(accuracy_chart({example("a")}));
  // Horizontal and vertical lines: down at 0, along to 0.5, down, along to 1, down to the axis.
  const size_t begin = html.find(" d=\"", html.find("class=\"line\"")) + 4;
  const std::string path = html.substr(begin, html.find('"', begin) - begin);
  std::string commands;
  for (const char c : path) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) commands += c;
  }
  EXPECT_EQ(commands, "MVHVHV") << path;
}

// Radii just below and exactly at those of the table, and shares that round.
TEST(ChartTest, ValuesReadOffAreThoseOfTheTable) {
  RunRecord run{"a"};
  for (int64_t i = 0; i < 37; ++i) {
    CertificateRow row;
    row.noise = &kFloatNoise;
    row.alpha = 0.001;
    row.sigma = 0.5;
    row.certificate.counts.n = 100'000;
    row.certificate.predict = i % 5 == 0 ? 1 : 0;
    row.certificate.radius = i % 3 == 0   ? 0.25 * static_cast<double>(i % 7)
                             : i % 3 == 1 ? 0.25 * static_cast<double>(i % 7) - 1e-9 * (i % 7 > 0)
                                          : 0.037 * static_cast<double>(i);
    run.rows.push_back(row);
  }
  const json series = data_of(accuracy_chart({curve_of(run, "a")}))["plots"][0]["series"][0];
  std::string cells;
  for (double radius = 0; radius <= 1.5; radius += 0.25) {
    cells += fmt::format("<td>{:.1f}<small>", read_until(series, radius));
  }
  std::string table = accuracy_table({{"a", &run, ""}});
  std::string printed;
  for (size_t at = 0; (at = table.find("<td>", at)) != std::string::npos; ++at) {
    const size_t small = table.find("<small>", at);
    if (small == std::string::npos || small > table.find("</td>", at)) continue;
    printed += table.substr(at, small - at) + "<small>";
  }
  EXPECT_EQ(cells, printed);
}

TEST(ChartTest, EqualValuesAreStatedOnceAtTheirLargestRadius) {
  Curve curve{"a", {}, {}};
  for (int i = 0; i <= 2000; ++i) curve.points.push_back({i / 2000.0, 1 - i / 2001.0});
  const json series = data_of(accuracy_chart({curve}))["plots"][0]["series"][0];
  EXPECT_LE(series["x"].size(), 1001U);
  EXPECT_EQ(series["x"].back(), 1.0);
}

TEST(ChartTest, EveryCurveHasAnEntryToSwitchIt) {
  const std::string html =
      render_chart(accuracy_chart({example("a"), {"left out", {}, {}}, example("b")}));
  EXPECT_EQ(count_of(html, "<g class=\"series\""), 2U);
  EXPECT_EQ(count_of(html, "<input type=\"checkbox\" checked>"), 2U);
  EXPECT_FALSE(contains(html, "left out"));
  // Colours and dashes are those of the place in the list, as in the figures.
  EXPECT_TRUE(contains(html, "stroke: #0072B2\""));
  EXPECT_TRUE(contains(html, "stroke: #009E73; stroke-dasharray: 6 6\""));
}

TEST(ChartTest, WhatAttacksLeaveIsDrawnAndStated) {
  Curve attacked = example("a");
  attacked.attacked = {{0.25, 0.7}, {0.5, 0.65}};
  const Chart chart = accuracy_chart({attacked});
  const json series = data_of(chart)["plots"][0]["series"][0];
  EXPECT_EQ(series["kind"], "from");
  EXPECT_EQ(series["suffix"], "attacked");
  EXPECT_EQ(series["y"], json({70.0, 65.0}));
  EXPECT_EQ(count_of(render_chart(chart), "<path class=\"line thin\""), 1U);
  EXPECT_TRUE(contains(render_chart(chart), "thin dashes: under attack, at most"));
  EXPECT_FALSE(contains(render_chart(accuracy_chart({example("a")})), "under attack"));
}

TEST(ChartTest, PanelsShareAxesAndLooks) {
  const Chart chart = panel_chart(
      "f", {{"left", {example("a"), example("b")}}, {"right", {example("b")}}, {"none", {}}});
  ASSERT_EQ(chart.plots.size(), 3U);
  ASSERT_EQ(chart.legend.size(), 2U);
  EXPECT_EQ(chart.plots[1].series[0].entry, 1U);
  EXPECT_EQ(chart.plots[0].x.to, chart.plots[1].x.to);
  EXPECT_EQ(chart.plots[0].y.to, chart.plots[1].y.to);
  EXPECT_EQ(chart.plots[2].title, "none (not certified yet)");
  EXPECT_THROW(panel_chart("f", {{"none", {}}}), Error);
}

TEST(ChartTest, NamesStayText) {
  for (const std::string name :
       {"\"<b>'\n&", "</script><script>alert(1)</script>", "<!--", "\\\"]}"}) {
    Chart chart = accuracy_chart({example(name)});
    chart.plots[0].title = name;
    const std::string html = render_chart(chart);
    EXPECT_FALSE(contains(html, "<b>"));
    EXPECT_FALSE(contains(html, "<!--"));
    EXPECT_FALSE(contains(html, "alert(1)</script>"));
    EXPECT_EQ(count_of(html, "<script"), 1U);
    EXPECT_EQ(count_of(html, "</script>"), 1U);
    const size_t begin = html.find("application/json\">") + 18;
    const json data = json::parse(html.substr(begin, html.find("</script>") - begin));
    EXPECT_EQ(data["plots"][0]["title"], name);
  }
}

TEST(ChartTest, EveryAxisHasATitle) {
  RunRecord run{"a"};
  run.rounds = {{1, 2.0, 0.25, 0.5, 0.9, 0.1}, {2, 1.0, {}, 0.6, 1, 0.2}};
  for (const Chart& chart : {training_chart({run}), attack_chart({run})}) {
    for (const Plot& plot : chart.plots) {
      EXPECT_FALSE(plot.x.label.empty());
      EXPECT_FALSE(plot.y.label.empty());
    }
    EXPECT_TRUE(chart.plots.back().names_x);
  }
}

TEST(ChartTest, TrainingHasAPlotForWhatWasMeasured) {
  RunRecord plain{"plain"}, evaluated{"evaluated"}, bare{"bare"};
  plain.rounds = {{1, 2.0}, {2, 1.0}};
  evaluated.rounds = {{1, 2.0, 0.25}, {2, std::nan("")}, {3, 1.5, 0.5}};
  EXPECT_EQ(training_chart({plain}).plots.size(), 2U);
  const Chart both = training_chart({bare, plain, evaluated});
  ASSERT_EQ(both.plots.size(), 3U);
  ASSERT_EQ(both.legend.size(), 2U);
  EXPECT_EQ(both.legend[0].colour, "#D55E00");  // the second run's, as in other charts
  EXPECT_EQ(both.plots[0].series[1].x, (std::vector<double>{1, 3}));
  EXPECT_EQ(both.plots[1].series.size(), 1U);
  EXPECT_EQ(both.plots[1].series[0].y, (std::vector<double>{25, 50}));
  EXPECT_THROW(training_chart({bare}), Error);
  EXPECT_THROW(attack_chart({plain}), Error);
}

TEST(ChartTest, TicsAreRoundAndWithinTheAxis) {
  std::string names;
  for (const Tic& tic : round_tics(-4, 6, 6)) names += tic.name + " ";
  EXPECT_EQ(names, "-4 -2 0 2 4 6 ");
  names.clear();
  for (const Tic& tic : round_tics(0, 62, 8)) names += tic.name + " ";
  EXPECT_EQ(names, "0 10 20 30 40 50 60 ");
}

TEST(ChartTest, RefusesCurvesThatAreAllEmpty) {
  EXPECT_THROW(accuracy_chart({{"a", {}, {}}}), Error);
  EXPECT_THROW(accuracy_chart({}), Error);
}

}  // namespace
}  // namespace fedsmooth
