#include "fedsmooth/report/figures/history_figure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <sstream>

#include "fedsmooth/base/error.h"
#include "tests/report/figures/drawing.h"

namespace fedsmooth {
namespace {

class HistoryFigureTest : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v gnuplot > /dev/null") != 0) GTEST_SKIP() << "gnuplot is missing";
  }
};

RunRecord run_of(const std::string& name, std::vector<RoundRow> rounds) {
  RunRecord run{name};
  run.rounds = std::move(rounds);
  return run;
}

const std::vector<RoundRow> kPlain = {{1, 2.0}, {2, 1.0}, {3, 1.5}};
const std::vector<RoundRow> kEvaluated = {{1, 2.0, 0.25}, {2, 1.0}, {3, 1.5, 0.5}};
const std::vector<RoundRow> kAttacked = {{1, 2.0, {}, 0.5, 0.9, 0.1}, {2, 1.0, {}, 0.6, 1, 0.2}};

std::string training(const std::vector<RunRecord>& runs) {
  return figure_svg(training_figure(runs));
}
std::string attack(const std::vector<RunRecord>& runs) { return figure_svg(attack_figure(runs)); }

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

// Corners of the lines in the first curve's colour, one list per line; the legend's come last.
using Corners = std::vector<std::pair<double, double>>;
std::vector<Corners> blue_lines(const std::string& svg) {
  std::vector<Corners> lines;
  const std::string blue = "<path stroke='rgb(  0, 114, 178)'";
  for (size_t at = 0; (at = svg.find(blue, at)) != std::string::npos; ++at) {
    const size_t begin = svg.find("d='", at) + 3;
    std::istringstream points(svg.substr(begin, svg.find('\'', begin) - begin));
    char command, comma;
    for (double x, y; points >> command >> x >> comma >> y;) {
      if (command == 'M') lines.emplace_back();
      lines.back().emplace_back(x, y);
    }
  }
  return lines;
}

TEST_F(HistoryFigureTest, LossFollowsTheRounds) {
  const auto lines = blue_lines(training({run_of("run", kPlain)}));
  ASSERT_FALSE(lines.empty());
  const Corners& loss = lines[0];
  ASSERT_EQ(loss.size(), 3);
  EXPECT_NEAR(loss[1].first - loss[0].first, loss[2].first - loss[1].first, 0.02);
  // 2.0, 1.0, 1.5; SVG counts downwards.
  EXPECT_NEAR((loss[2].second - loss[0].second) / (loss[1].second - loss[0].second), 0.5, 1e-3);
  EXPECT_GT(loss[1].second, loss[0].second);
}

TEST_F(HistoryFigureTest, AxesHoldTheirValuesWithFewTics) {
  const auto axis = [](double first, double second) {
    const std::string script = training_figure({run_of("run", {{1, first}, {2, second}})}).script;
    const size_t begin = script.find("set yrange");
    return script.substr(begin, script.find("plot", begin) - begin);
  };
  EXPECT_EQ(axis(2.18, 1.19), "set yrange [1:2.5]\nset ytics 0.5\n");
  EXPECT_EQ(axis(0.1, 0.5), "set yrange [0.1:0.5]\nset ytics 0.1\n");
  EXPECT_EQ(axis(-3, 5), "set yrange [-4:6]\nset ytics 2\n");
  EXPECT_EQ(axis(100, 2.3), "set yrange [0:100]\nset ytics 50\n");
  EXPECT_EQ(axis(2, 2), "set yrange [2:2.5]\nset ytics 0.5\n");
  EXPECT_EQ(axis(2, 2 + 1e-12), "set yrange [2:3]\nset ytics 1\n");
  EXPECT_EQ(axis(0, 0), "set yrange [0:0.5]\nset ytics 0.5\n");
  EXPECT_EQ(axis(1e300, 1e300), "set yrange [1e+300:1.5e+300]\nset ytics 5e+299\n");
}

TEST_F(HistoryFigureTest, OnlyWhatWasMeasuredHasAStrip) {
  EXPECT_EQ(count_of(training({run_of("run", kPlain)}), "noisy accuracy"), 0);
  EXPECT_EQ(count_of(training({run_of("run", kPlain), run_of("b", kEvaluated)}), "noisy accuracy"),
            1);
  std::vector<RoundRow> compared = kAttacked;
  EXPECT_EQ(count_of(attack({run_of("run", compared)}), "cosine"), 0);
  compared[1].gradient_cosine = 0.01;
  EXPECT_EQ(count_of(attack({run_of("run", compared)}), "cosine"), 1);
}

TEST_F(HistoryFigureTest, AccuracyJoinsTheRoundsThatWereEvaluated) {
  const auto lines = blue_lines(training({run_of("run", kEvaluated)}));
  ASSERT_EQ(lines.size(), 4);  // three strips and the legend
  EXPECT_EQ(lines[0].size(), 3);
  EXPECT_EQ(lines[1].size(), 2);
}

TEST_F(HistoryFigureTest, RunsWithoutAnAttackAreLeftOutAndColoursStay) {
  const std::string svg = attack({run_of("plain", kPlain), run_of("attacked", kAttacked)});
  EXPECT_EQ(count_of(svg, ">plain</text>"), 0);
  EXPECT_EQ(count_of(svg, ">attacked</text>"), 1);
  EXPECT_TRUE(blue_lines(svg).empty());
  EXPECT_GT(count_of(svg, "rgb(213,  94,   0)"), 0);  // the second run's
}

TEST_F(HistoryFigureTest, MeanAndPercentileAreBothDrawn) {
  const auto lines = blue_lines(attack({run_of("run", kAttacked)}));
  ASSERT_EQ(lines.size(), 4);  // mean, 95th percentile, drop, legend
  EXPECT_GT(lines[0][0].second, lines[1][0].second);
}

TEST_F(HistoryFigureTest, ASingleRoundIsALineToo) {
  const auto lines = blue_lines(training({run_of("run", {{1, 2.0, 0.5}})}));
  ASSERT_EQ(lines.size(), 4);
  EXPECT_GT(lines[0][1].first - lines[0][0].first, 10);
}

TEST_F(HistoryFigureTest, RefusesNothingToDraw) {
  EXPECT_THROW(training({}), Error);
  EXPECT_THROW(training({run_of("run", {})}), Error);
  EXPECT_THROW(attack({run_of("run", kPlain)}), Error);
}

TEST_F(HistoryFigureTest, DrawsLossesBeyondMeasure) {
  const double nan = std::nan("");
  const std::vector<RoundRow> diverged = {{1, 2.3}, {2, 1e300}, {3, -1e300}, {4, nan}};
  EXPECT_EQ(count_of(training({run_of("run", diverged)}), "</svg>"), 1);
  EXPECT_THROW(training({run_of("run", {{.round = 1, .loss = nan, .seconds = nan}})}), Error);
}

TEST_F(HistoryFigureTest, ManyRoundsAreThinnedOutToTheLast) {
  std::vector<RoundRow> rounds;
  for (int64_t i = 1; i <= 100'000; ++i) rounds.push_back({i, 1.0 / static_cast<double>(i)});
  EXPECT_LT(training({run_of("run", rounds)}).size(), 100'000);
}

TEST_F(HistoryFigureTest, HostileNamesAreOnlyNames) {
  const std::string svg = training({run_of("`touch PWNED`<b>", kPlain), run_of("a', x #", kPlain)});
  EXPECT_EQ(count_of(svg, "`touch PWNED`&lt;b>"), 1);
  EXPECT_EQ(count_of(svg, "a', x #</text>"), 1);
  EXPECT_FALSE(std::filesystem::exists("PWNED"));
}

}  // namespace
}  // namespace fedsmooth
