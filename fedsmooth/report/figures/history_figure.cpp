#include "fedsmooth/report/figures/history_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/text.h"
#include "fedsmooth/report/figures/gnuplot.h"
#include "fedsmooth/report/history.h"

namespace fedsmooth {
namespace {

constexpr double kStripHeight = 130, kGap = 42;
constexpr double kLeft = 64, kRight = 20, kTop = 30, kBottom = 78;
constexpr double kThin = 0.8;  // width of a second curve

/// Those to draw; null for one that is left out.
using Runs = std::vector<const RunRecord*>;
using Points = std::vector<std::pair<double, double>>;

/// The strip's points, of which a single one becomes a short line: a line needs two ends.
Points points_of(const std::vector<RoundRow>& rounds, const Strip::Value& value) {
  Points points = strip_points(rounds, value);
  if (points.size() == 1) {
    const auto [x, y] = points[0];
    points = {{x - 0.4, y}, {x + 0.4, y}};
  }
  return points;
}

std::string format_points(const Points& points) {
  std::string lines;
  for (const auto& [x, y] : thin_points(points)) lines += fmt::format("{:.8g} {:.8g}\n", x, y);
  return lines;
}

std::string format_axis(const std::vector<double>& values) {
  const ValueAxis axis = value_axis(values);
  return fmt::format("set yrange [{:.8g}:{:.8g}]\nset ytics {:.8g}\n", axis.bottom, axis.top,
                     axis.step);
}

/// What is drawn of a strip. gnuplot wants the data before the first plot.
struct Drawn {
  const Strip* strip;
  std::string data;
  std::string plots;
  std::vector<double> values;  // on its axis
};

/// The strips for which some run has values.
std::vector<Drawn> draw_strips(const Runs& runs, const std::vector<Strip>& strips) {
  std::vector<Drawn> drawn;
  for (const Strip& strip : strips) {
    Drawn now{&strip, {}, {}, strip.shown};
    const auto add = [&](size_t run, const Strip::Value& value, std::string_view kind,
                         double width) {
      const Points points = points_of(runs[run]->rounds, value);
      if (points.empty()) return;
      for (const auto& [x, y] : points) now.values.push_back(y);
      const std::string block = fmt::format("${}_{}_{}", kind, drawn.size(), run);
      now.data += fmt::format("{} << END\n{}END\n", block, format_points(points));
      now.plots += fmt::format("{}{} with lines linewidth {} {} notitle",
                               now.plots.empty() ? "" : ", ", block, width, curve_look(run));
    };
    for (size_t run = 0; run < runs.size(); ++run) {
      if (runs[run] == nullptr) continue;
      add(run, strip.value, "value", 2);
      if (strip.thin) add(run, strip.thin, "thin", kThin);
    }
    if (!now.plots.empty()) drawn.push_back(std::move(now));
  }
  return drawn;
}

/// One entry per run, and one that explains thin lines, each after a comma.
std::vector<std::string> make_legend(const Runs& runs, const std::vector<Drawn>& drawn) {
  std::vector<std::string> entries;
  for (size_t run = 0; run < runs.size(); ++run) {
    if (runs[run] == nullptr) continue;
    entries.push_back(
        fmt::format(", keyentry with lines linewidth 2 {} title {}", curve_look(run),
                    quote_for_gnuplot(shorten(runs[run]->shown_name(), kLongestLabel))));
  }
  if (std::any_of(drawn.begin(), drawn.end(), [](const Drawn& d) { return d.strip->thin; })) {
    entries.push_back(fmt::format(
        ", keyentry with lines linewidth {} linecolor rgb '#777777' title 'thin: 95th percentile'",
        kThin));
  }
  return entries;
}

std::string axis_of_rounds(const Runs& runs) {
  int64_t last = 1;
  for (const RunRecord* run : runs) {
    if (run == nullptr) continue;
    for (const RoundRow& row : run->rounds) last = std::max(last, row.round);
  }
  return fmt::format("set xrange [0:{}]\n{}", 1.03 * static_cast<double>(last) + 0.2,
                     last <= 10 ? "set xtics 1\n" : "");
}

std::string place_strip(const Drawn& drawn, double top, double height) {
  return fmt::format(
      "set tmargin at screen {}\nset bmargin at screen {}\n"
      "set label 1 '{}' at graph 0, graph 1 offset 0,0.8 left\n{}plot {}",
      1 - top / height, 1 - (top + kStripHeight) / height, drawn.strip->title,
      format_axis(drawn.values), drawn.plots);
}

Figure stack(const Runs& runs, const std::vector<Strip>& strips) {
  const std::vector<Drawn> drawn = draw_strips(runs, strips);
  if (drawn.empty()) throw Error("figure: no number to draw is finite");
  const std::vector<std::string> legend = make_legend(runs, drawn);
  const double legend_height = kLine * (static_cast<double>(legend.size()) + 0.5);
  const double height = kTop + static_cast<double>(drawn.size()) * (kStripHeight + kGap) - kGap +
                        kBottom + legend_height;
  std::string script(axes_style());
  for (const Drawn& strip : drawn) script += strip.data;
  script += fmt::format(
      "{}set multiplot\n"
      "set lmargin at screen {}\nset rmargin at screen {}\n"
      "set key at screen 0.5,{} center top vertical maxcols 1 Left reverse samplen 3\n"
      "set format x ''\n",
      axis_of_rounds(runs), kLeft / kFigureWidth, 1 - kRight / kFigureWidth,
      legend_height / height);
  double top = kTop;
  for (const Drawn& strip : drawn) {
    const bool last = &strip == &drawn.back();
    if (last) script += "set format x '%g'\nset xlabel 'round' offset 0,0.3\n";
    script += place_strip(strip, top, height) +
              (last ? fmt::format("{}", fmt::join(legend, "")) : "") + "\n";
    top += kStripHeight + kGap;
  }
  return {script + "unset multiplot\n", height};
}

Runs choose(const std::vector<RunRecord>& runs, bool (*has)(const std::vector<RoundRow>&),
            std::string_view what) {
  Runs chosen;
  for (const RunRecord& run : runs) chosen.push_back(has(run.rounds) ? &run : nullptr);
  if (std::all_of(chosen.begin(), chosen.end(), [](const RunRecord* run) { return !run; })) {
    throw Error("figure: no run has {}", what);
  }
  return chosen;
}

}  // namespace

Figure training_figure(const std::vector<RunRecord>& runs) {
  const auto has_rounds = [](const std::vector<RoundRow>& rounds) { return !rounds.empty(); };
  return stack(choose(runs, has_rounds, "rounds"), training_strips());
}

Figure attack_figure(const std::vector<RunRecord>& runs) {
  return stack(choose(runs, has_attack, "an attack in training"), attack_strips());
}

}  // namespace fedsmooth
