#include "fedsmooth/report/figure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/report/gnuplot.h"
#include "fedsmooth/report/text.h"

namespace fedsmooth {
namespace {

const std::vector<CurvePoint> kFall = {{0, 0.8}, {0.25, 0.5}, {0.5, 0.1}};

class FigureTest : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v gnuplot > /dev/null") != 0) GTEST_SKIP() << "gnuplot is missing";
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "fedsmooth_figure_" + test->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    std::filesystem::current_path(folder_);
  }
  void TearDown() override {
    std::filesystem::current_path(testing::TempDir());
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  std::filesystem::path folder_;
};

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

TEST_F(FigureTest, RefusesNoCurvesAndEmptyCurves) {
  EXPECT_THROW(certified_accuracy_svg({}), Error);
  EXPECT_THROW(certified_accuracy_svg({{"run", {}}}), Error);
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

// x and y of the corners that gnuplot drew, in units of the axes.
std::vector<std::pair<double, double>> corners_of(const std::string& svg) {
  const std::string path = curve_paths(svg).at(0).points;
  std::istringstream points(path.substr(path.rfind('M')));  // behind the legend's sample
  std::vector<std::pair<double, double>> corners;
  char command, comma;
  for (double x, y; points >> command >> x >> comma >> y;) corners.emplace_back(x, y);
  const auto [x0, y80] = corners.front();
  const auto [x50, y0] = corners.back();
  for (auto& [x, y] : corners) {
    x = 0.5 * (x - x0) / (x50 - x0);
    y = 80 * (y - y0) / (y80 - y0);
  }
  return corners;
}

TEST_F(FigureTest, StepsHoldTheAccuracyOfTheirRightEnd) {
  const std::vector<std::pair<double, double>> expected = {{0, 80},    {0, 50},   {0.25, 50},
                                                           {0.25, 10}, {0.5, 10}, {0.5, 0}};
  const auto corners = corners_of(certified_accuracy_svg({{"run", kFall}}));
  ASSERT_EQ(corners.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(corners[i].first, expected[i].first, 1e-3) << i;
    EXPECT_NEAR(corners[i].second, expected[i].second, 0.1) << i;
  }
}

TEST_F(FigureTest, ManyStepsAreThinnedOut) {
  std::vector<CurvePoint> points;
  for (int i = 0; i <= 100'000; ++i) points.push_back({i * 1e-5, 0.9 * (1 - i * 1e-5)});
  EXPECT_LT(certified_accuracy_svg({{"run", points}}).size(), 100'000);
}

TEST_F(FigureTest, FragmentFitsIntoAPage) {
  const std::string svg = certified_accuracy_svg({{"a", kFall}, {"b", kFall}});
  EXPECT_TRUE(svg.starts_with("<svg"));
  EXPECT_NE(svg.find("viewBox="), std::string::npos);
  EXPECT_EQ(svg.substr(0, svg.find('>')).find("width="), std::string::npos);
  EXPECT_EQ(svg.find("id="), std::string::npos);
  EXPECT_EQ(svg.find("<title>"), std::string::npos);
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
