#include "fedsmooth/report/page/history_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "fedsmooth/base/error.h"
#include "fedsmooth/report/figures/canvas.h"
#include "fedsmooth/report/history.h"

namespace fedsmooth {
namespace {

constexpr double kStripHeight = 180, kLastStripHeight = 215;

Axis axis_of_rounds(const std::vector<const RunRecord*>& runs) {
  int64_t last = 1;
  for (const RunRecord* run : runs) {
    for (const RoundRow& row : run->rounds) last = std::max(last, row.round);
  }
  Axis axis{"round", 0, 1.03 * static_cast<double>(last) + 0.2, {}, 0};
  axis.tics = last <= 8 ? std::vector<Tic>() : round_tics(0, axis.to, 8);
  if (last <= 8) {
    for (int64_t i = 0; i <= last; ++i) {
      axis.tics.push_back({static_cast<double>(i), fmt::format("{}", i)});
    }
  }
  return axis;
}

Series series_of(const std::vector<RoundRow>& rounds, const Strip::Value& value, size_t entry,
                 std::string_view suffix) {
  Series series{Series::Kind::kLine, entry, std::string(suffix)};
  series.path = thin_points(strip_points(rounds, value));
  for (const auto& [round, y] : series.path) {
    series.x.push_back(round);
    series.y.push_back(std::stod(fmt::format("{:.4g}", y)));
  }
  if (series.path.size() == 1) {  // a line needs two ends
    const auto [x, y] = series.path[0];
    series.path = {{x - 0.4, y}, {x + 0.4, y}};
  }
  return series;
}

Axis axis_of_values(const Strip& strip, const std::vector<Series>& drawn) {
  std::vector<double> values = strip.shown;
  for (const Series& series : drawn) {
    for (const auto& [x, y] : series.path) values.push_back(y);
  }
  const ValueAxis range = value_axis(values);
  return {strip.title, range.bottom, range.top, round_tics(range.bottom, range.top, 6), -1};
}

Chart stack(std::string name, std::string description, const std::vector<RunRecord>& all,
            const std::vector<Strip>& strips, bool (*has)(const std::vector<RoundRow>&)) {
  Chart chart{std::move(name), std::move(description)};
  chart.layout = Chart::Layout::kStack;
  std::vector<const RunRecord*> runs;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!has(all[i].rounds)) continue;
    runs.push_back(&all[i]);
    chart.legend.push_back(curve_entry(all[i].shown_name(), i));
  }
  for (const Strip& strip : strips) {
    Plot plot;
    plot.height = kStripHeight;
    plot.names_x = false;
    plot.x = axis_of_rounds(runs);
    for (size_t i = 0; i < runs.size(); ++i) {
      plot.series.push_back(series_of(runs[i]->rounds, strip.value, i, ""));
      if (!strip.thin) continue;
      plot.series.push_back(series_of(runs[i]->rounds, strip.thin, i, strip.thin_is));
    }
    std::erase_if(plot.series, [](const Series& series) { return series.path.empty(); });
    if (plot.series.empty()) continue;
    if (strip.thin) chart.hints.push_back(fmt::format("thin dashes: {}", strip.thin_is));
    plot.y = axis_of_values(strip, plot.series);
    chart.plots.push_back(std::move(plot));
  }
  if (chart.plots.empty()) throw Error("figure: no number to draw is finite");
  chart.plots.back().names_x = true;
  chart.plots.back().height = kLastStripHeight;
  return chart;
}

}  // namespace

Chart training_chart(const std::vector<RunRecord>& runs) {
  return stack("training", "training round by round", runs, training_strips(),
               [](const std::vector<RoundRow>& rounds) { return !rounds.empty(); });
}

Chart attack_chart(const std::vector<RunRecord>& runs) {
  return stack("attack-in-training", "the attack in training, round by round", runs,
               attack_strips(), has_attack);
}

}  // namespace fedsmooth
