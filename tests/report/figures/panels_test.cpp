#include "fedsmooth/report/figures/panels.h"

#include <cstdio>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/report/figures/gnuplot.h"
#include "tests/report/figures/drawing.h"

namespace fedsmooth {
namespace {

const std::vector<CurvePoint> kFall = {{0, 0.8}, {0.25, 0.5}, {0.5, 0.1}};
const std::vector<CurvePoint> kLow = {{0, 0.3}, {1.0, 0.1}};

class PanelsTest : public DrawingTest {};

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

std::string drawn(const std::string& block, size_t look) {
  return block + " with lines linewidth 2 " + curve_look(look) + " notitle";
}

TEST_F(PanelsTest, ALabelLooksTheSameInEveryPanel) {
  const std::string script =
      panel_figure({{"left", {{"a", kFall}, {"b", kLow}}}, {"right", {{"b", kLow}, {"c", kFall}}}})
          .script;
  for (const std::string& plot : {drawn("$curve0_0", 0), drawn("$curve0_1", 1),
                                  drawn("$curve1_1", 1), drawn("$curve1_2", 2)}) {
    EXPECT_EQ(count_of(script, plot), 1U) << plot << "\n" << script;
  }
  EXPECT_EQ(count_of(script, " with lines"), 4U + 3U);  // and one legend
  EXPECT_EQ(count_of(script, curve_look(1) + " title " + quote_for_gnuplot("b")), 1U);
}

TEST_F(PanelsTest, AxesHoldTheCurvesOfAllPanels) {
  const std::string script =
      panel_figure({{"left", {{"a", kFall}}}, {"right", {{"a", kLow}}}}).script;
  EXPECT_EQ(count_of(script, "set xrange"), 1U);
  EXPECT_EQ(count_of(script, "set xrange [0:1.03]\n"), 1U) << script;
  EXPECT_EQ(count_of(script, "set yrange"), 1U);
  EXPECT_EQ(count_of(script, "set yrange [0:90]\n"), 1U);
}

TEST_F(PanelsTest, EveryPanelHasATitleAndTheFirstAlonePercents) {
  const std::string svg =
      figure_svg(panel_figure({{"left", {{"a", kFall}}}, {"right", {{"a", kLow}}}}));
  for (const std::string once : {"left", "right", "a", "certified accuracy (%)", "80"}) {
    EXPECT_EQ(count_of(svg, ">" + once + "</text>"), 1U) << once;
  }
  EXPECT_EQ(count_of(svg, "ℓ₂ radius</text>"), 2U);
}

TEST_F(PanelsTest, GrowsByThePanelAndIsDrawnAsWide) {
  const Panel panel{"one", {{"a", kFall}}};
  const double one = panel_figure({panel}).width, two = panel_figure({panel, panel}).width;
  EXPECT_EQ(two - one, 320);
  const std::string size = fmt::format("viewBox=\"0 0 {} ", two);
  EXPECT_EQ(count_of(figure_svg(panel_figure({panel, panel})), size), 1U);
  for (const std::string name : {"f.svg", "f.png", "f.pdf"}) {
    write_figure(panel_figure({panel, panel}), folder_ / name);
    EXPECT_GT(std::filesystem::file_size(folder_ / name), 1000U) << name;
  }
  EXPECT_EQ(count_of(read_file(folder_ / "f.svg"), size), 1U);
}

TEST_F(PanelsTest, WhatIsNotCertifiedIsLeftOut) {
  const std::string svg = figure_svg(
      panel_figure({{"empty", {{"gone", {}}}}, {"right", {{"a", kFall}, {"gone", {}, kFall}}}}));
  EXPECT_EQ(count_of(svg, ">empty</text>"), 1U);
  EXPECT_EQ(count_of(svg, ">not certified yet</text>"), 1U);
  EXPECT_EQ(count_of(svg, "gone"), 0U);
  EXPECT_EQ(count_of(svg, "attack"), 0U);
  EXPECT_FALSE(has_curves({{"empty", {{"gone", {}}}}}));
  EXPECT_THROW(panel_figure({{"empty", {{"gone", {}}}}}), Error);
  EXPECT_THROW(panel_figure({}), Error);
}

TEST_F(PanelsTest, AttackedAccuracyIsDashedInTheSameColour) {
  const std::string script = panel_figure({{"left", {{"a", kFall, kFall}}}}).script;
  EXPECT_EQ(
      count_of(script, "$attacked0_0 with lines linewidth 1.4 dashtype (5,5) linecolor rgb '" +
                           curve_colour(0) + "' notitle"),
      1U);
  EXPECT_EQ(count_of(script, std::string(kAttackedTitle)), 1U);
}

// Where a text stands, of gnuplot's `<g transform="translate(x,y)" ...>\n<text>...`; it must be
// there once.
std::pair<double, double> place_of(const std::string& svg, const std::string& end_of_text) {
  EXPECT_EQ(count_of(svg, end_of_text + "</text>"), 1U) << end_of_text;
  const size_t at = svg.rfind("translate(", svg.find(end_of_text + "</text>"));
  std::pair<double, double> place;
  EXPECT_EQ(std::sscanf(svg.c_str() + at, "translate(%lf,%lf)", &place.first, &place.second), 2);
  return place;
}

// gnuplot leaves out of a legend what it has no room for, or continues below the picture.
TEST_F(PanelsTest, EveryLabelIsInThePicture) {
  for (const size_t panels : {1, 2, 3, 6}) {
    for (const size_t length : {1, 10, 30, 300}) {
      std::vector<Curve> curves;
      for (char name = 'A'; name < 'A' + 12; ++name) {
        curves.push_back({std::string(length, 'x') + name, kFall});
      }
      const Figure figure = panel_figure(std::vector<Panel>(panels, {"t", curves}));
      const std::string svg = figure_svg(figure);
      for (char name = 'A'; name < 'A' + 12; ++name) {
        const auto [x, y] = place_of(svg, std::string("x") + name);
        EXPECT_TRUE(x > 0 && x < figure.width) << panels << " " << length << name;
        EXPECT_LT(y + kFont / 4, figure.height) << panels << " " << length << name;
      }
    }
  }
}

}  // namespace
}  // namespace fedsmooth
