#include "fedsmooth/report/figures/figure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/base/text.h"
#include "fedsmooth/report/figures/gnuplot.h"
#include "tests/report/figures/drawing.h"

namespace fedsmooth {
namespace {

const std::vector<CurvePoint> kFall = {{0, 0.8}, {0.25, 0.5}, {0.5, 0.1}};

class FigureTest : public DrawingTest {
 protected:
};

std::string certified_accuracy_svg(const std::vector<Curve>& curves) {
  return figure_svg(certified_figure(curves));
}

void draw_certified_accuracy(const std::vector<Curve>& curves, const std::filesystem::path& out) {
  write_figure(certified_figure(curves), out);
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(FigureTest, EndingChoosesTheFormat) {
  const std::vector<std::pair<std::string, std::string>> formats = {
      {"a.svg", "<?xml"}, {"a.pdf", "%PDF-"}, {"a.png", "\x89PNG\r\n"}};
  for (const auto& [name, magic] : formats) {
    draw_certified_accuracy({{"run", kFall}}, folder_ / name);
    EXPECT_TRUE(read_file(folder_ / name).starts_with(magic)) << name;
  }
}

TEST_F(FigureTest, RefusesAnotherEndingAndLeavesNothingBehind) {
  const std::string what = error_of([&] {
    draw_certified_accuracy({{"run", kFall}}, folder_ / "a.jpg");
  });
  EXPECT_NE(what.find("a.jpg: unknown kind of figure; use .svg, .pdf or .png"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(FigureTest, RefusesCurvesWithoutAnyPoint) {
  EXPECT_THROW(certified_accuracy_svg({}), Error);
  EXPECT_THROW(certified_accuracy_svg({{"run", {}}}), Error);
  EXPECT_THROW(certified_accuracy_svg({{"run", {}, kFall}}), Error);
}

TEST_F(FigureTest, FileNameOutOfAnAttackIsOnlyAName) {
  const std::filesystem::path out = folder_ / "a'; system 'touch PWNED'; $(touch PWNED) `x`.svg";
  draw_certified_accuracy({{"run", kFall}}, out);
  EXPECT_TRUE(std::filesystem::exists(out));
  EXPECT_FALSE(std::filesystem::exists("PWNED"));
}

TEST_F(FigureTest, LabelCannotLeaveItsString) {
  const std::string command = "system(\"touch PWNED\")";  // short enough not to be cut
  const std::vector<std::string> attacks = {
      "a', " + command + " #",
      "a\" ; " + command + " #",
      "a\n" + command + "\n",
      "a\r\n" + command + "\r\n",
      "a'\n" + command + "\n",
      "a\"\n" + command + "\n",
      "a\\', " + command + " #",
      "a\\\" ; " + command + " #",
      "a\\",
      "`touch PWNED`",
      "$(touch PWNED)",
      "END\n" + command,
      "a'.`touch PWNED`.'",
      "a''`touch PWNED`",
      "a'''`touch PWNED`",
      "a\".`touch PWNED`.\"",
      "@x $curve0 %s %d {/Bold x}",
      std::string("a\0b", 3) + command,
      "\xff\xfe'; " + command + " #",
  };
  for (const std::string& attack : attacks) {
    const std::string svg = certified_accuracy_svg({{attack, kFall}});
    EXPECT_EQ(count_of(svg, "</svg>"), 1) << attack;
    EXPECT_TRUE(std::filesystem::is_empty(folder_)) << attack;
  }
}

TEST_F(FigureTest, LabelIsShownAsItIs) {
  const std::string svg = certified_accuracy_svg({{"it's a_b^2 \\n \"q\" $x `y` <b>&", kFall}});
  EXPECT_NE(svg.find("it's a_b^2 \\n \"q\" $x `y` &lt;b>&amp;"), std::string::npos) << svg;
}

TEST_F(FigureTest, EveryCharacterIsShownAlsoBeforeADigit) {
  for (char c = ' '; c < 0x7f; ++c) {
    const std::string label = std::string("a") + c + "0" + c + "7z";
    const std::string svg = certified_accuracy_svg({{label, kFall}});
    std::string shown = label;
    if (c == '<') shown = "a&lt;0&lt;7z";
    if (c == '&') shown = "a&amp;0&amp;7z";
    EXPECT_EQ(count_of(svg, "<text>" + shown + "</text>"), 1) << label;
  }
  EXPECT_EQ(count_of(certified_accuracy_svg({{"σ = 0.25", kFall}}), "σ = 0.25</text>"), 1);
}

TEST_F(FigureTest, EveryCurveIsInTheLegendHoweverLongTheLabels) {
  for (const size_t length : {1, 30, 300}) {
    std::vector<Curve> curves;
    for (char name = 'A'; name < 'A' + 12; ++name) {
      curves.push_back({std::string(length, 'x') + name, kFall});
    }
    const std::string svg = certified_accuracy_svg(curves);
    for (char name = 'A'; name < 'A' + 12; ++name) {
      EXPECT_EQ(count_of(svg, std::string("x") + name + "</text>"), 1) << length << name;
    }
  }
}

// Of gnuplot's `<path stroke='colour' stroke-dasharray='dashes'  d='points'/>`.
struct Path {
  std::string look;
  std::string points;
};

std::vector<Path> curve_paths(const std::string& svg) {
  std::vector<Path> paths;
  // Axes and grid come first; the curves follow their legend entries.
  for (size_t at = svg.find(">run</text>");
       (at = svg.find("<path stroke=", at)) != std::string::npos; ++at) {
    const size_t points = svg.find("d='M", at);
    paths.push_back(
        {svg.substr(at, points - at), svg.substr(points, svg.find("'/>", points) - points)});
  }
  return paths;
}

TEST_F(FigureTest, CurvesLookDifferent) {
  std::set<std::string> looks;
  for (const Path& path :
       curve_paths(certified_accuracy_svg(std::vector<Curve>(12, {"run", kFall})))) {
    looks.insert(path.look);
  }
  EXPECT_EQ(looks.size(), 13);  // and the border, once more
}

using Corners = std::vector<std::pair<double, double>>;

Corners read_corners(const std::string& path) {
  std::istringstream points(path.substr(path.rfind('M')));  // behind the legend's sample
  Corners corners;
  char command, comma;
  for (double x, y; points >> command >> x >> comma >> y;) corners.emplace_back(x, y);
  return corners;
}

// Corners that gnuplot drew, in units of the axes, which `fall` tells: kFall as it was drawn.
Corners scale(Corners corners, const Corners& fall) {
  const auto [x0, y80] = fall.front();
  const auto [x50, y0] = fall.back();
  for (auto& [x, y] : corners) {
    x = 0.5 * (x - x0) / (x50 - x0);
    y = 80 * (y - y0) / (y80 - y0);
  }
  return corners;
}

void expect_near(const Corners& corners, const Corners& expected) {
  ASSERT_EQ(corners.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(corners[i].first, expected[i].first, 1e-3) << i;
    EXPECT_NEAR(corners[i].second, expected[i].second, 0.1) << i;
  }
}

TEST_F(FigureTest, StepsHoldTheAccuracyOfTheirRightEnd) {
  const Corners fall =
      read_corners(curve_paths(certified_accuracy_svg({{"run", kFall}})).at(0).points);
  expect_near(scale(fall, fall), {{0, 80}, {0, 50}, {0.25, 50}, {0.25, 10}, {0.5, 10}, {0.5, 0}});
}

constexpr const char* kBlue = "rgb(  0, 114, 178)";
constexpr const char* kOrange = "rgb(213,  94,   0)";

TEST_F(FigureTest, RunsWithoutCertificatesAreLeftOutAndColoursStay) {
  const std::string svg = certified_accuracy_svg({{"first", {}}, {"run", kFall}});
  EXPECT_EQ(count_of(svg, ">first</text>"), 0);
  EXPECT_EQ(count_of(svg, kBlue), 0);
  EXPECT_GT(count_of(svg, kOrange), 0);
}

TEST_F(FigureTest, AttackedAccuracyIsDashedInTheSameColour) {
  EXPECT_EQ(count_of(certified_accuracy_svg({{"run", kFall}}), "attack"), 0);
  const std::string svg = certified_accuracy_svg({{"other", kFall}, {"run", kFall, kFall}});
  EXPECT_EQ(count_of(svg, "thin: under attack"), 1);
  const std::string thin = "stroke-width=\"1.40\"";
  const size_t attacked = svg.find(std::string("<path stroke='") + kOrange, svg.find(thin));
  EXPECT_NE(svg.substr(attacked, 80).find("stroke-dasharray"), std::string::npos);
}

TEST_F(FigureTest, AttackedStepsHoldTheAccuracyOfTheirLeftEnd) {
  const std::string svg = certified_accuracy_svg({{"run", kFall, kFall}});
  const Corners fall = read_corners(curve_paths(svg).at(0).points);
  const size_t begin = svg.find("d='M", svg.find(std::string("<path stroke='") + kBlue));
  const Corners attacked = read_corners(svg.substr(begin, svg.find("'/>", begin) - begin));
  expect_near(scale(attacked, fall),
              {{0, 80}, {0.25, 80}, {0.25, 50}, {0.5, 50}, {0.5, 10}, {0.515, 10}});
}

TEST_F(FigureTest, LegendGivesWayToAttackedAccuracy) {
  const double inside = certified_figure({{"run", kFall}}).height;
  EXPECT_EQ(certified_figure({{"run", kFall, {{0, 0.9}, {0.2, 0.1}}}}).height, inside);
  EXPECT_GT(certified_figure({{"run", kFall, {{0, 0.9}, {0.2, 0.9}}}}).height, inside);
  EXPECT_GT(certified_figure({{"run", kFall, {{0.45, 0.9}}}}).height, inside);
}

TEST_F(FigureTest, ManyStepsAreThinnedOut) {
  std::vector<CurvePoint> points;
  for (int i = 0; i <= 100'000; ++i) points.push_back({i * 1e-5, 0.9 * (1 - i * 1e-5)});
  EXPECT_LT(certified_accuracy_svg({{"run", points}}).size(), 100'000);
}

TEST_F(FigureTest, DrawsARunWithoutASingleCorrectImage) {
  EXPECT_NO_THROW(certified_accuracy_svg({{"nothing", {{0, 0}}}}));
}

TEST_F(FigureTest, GnuplotsOwnMessageReachesTheUser) {
  const std::string what = error_of([] { run_gnuplot("set terminal no_such_terminal\n"); });
  EXPECT_NE(what.find("gnuplot: failed"), std::string::npos) << what;
  EXPECT_NE(what.find("unknown or ambiguous terminal"), std::string::npos) << what;
}

TEST_F(FigureTest, MissingGnuplotNamesThePackage) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", folder_.c_str(), 1);
  const std::string what = error_of([] { run_gnuplot("set terminal svg\n"); });
  setenv("PATH", path.c_str(), 1);
  EXPECT_NE(what.find("apt-get install gnuplot-nox"), std::string::npos) << what;
}

}  // namespace
}  // namespace fedsmooth
