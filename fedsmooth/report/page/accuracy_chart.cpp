#include "fedsmooth/report/page/accuracy_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "fedsmooth/base/error.h"
#include "fedsmooth/report/facts.h"
#include "fedsmooth/report/figures/canvas.h"

namespace fedsmooth {
namespace {

constexpr double kOneHeadroom = 1.1, kPanelHeadroom = 1.05;
constexpr double kPanelWidth = 360, kPanelHeight = 280;
constexpr double kDifferenceHeight = 220;
constexpr const char* kAttackedHint = "thin dashes: under attack, at most";

/// A share as the tables print it, in percent.
double printed(double share) { return std::stod(percent(share)); }

/// Rounded down, so that no radius of a table is reached that was not certified.
double printed_radius(double radius, Norm norm) {
  const double unit = norm == Norm::kLinf ? 1e9 : 1e6;
  return std::floor(radius * unit) / unit;
}

Series certified_series(const Curve& curve, const Axes& axes, size_t entry) {
  Series series{Series::Kind::kUntil, entry};
  for (const CurvePoint& point : curve.points) {
    const double x = printed_radius(point.radius, axes.norm), y = printed(point.accuracy);
    if (!series.y.empty() && series.y.back() == y) {
      series.x.back() = x;
    } else {
      series.x.push_back(x);
      series.y.push_back(y);
    }
  }
  for (const CurvePoint& corner : lower_corners(thin_out(curve.points, axes.x_max))) {
    series.path.emplace_back(corner.radius, 100 * corner.accuracy);
  }
  return series;
}

Series attacked_series(const Curve& curve, const Axes& axes, size_t entry) {
  Series series{Series::Kind::kFrom, entry, "attacked"};
  for (const CurvePoint& point : curve.attacked) {
    series.x.push_back(point.radius);
    series.y.push_back(printed(point.accuracy));
  }
  for (const CurvePoint& corner : upper_corners(curve.attacked, axes.x_max)) {
    series.path.emplace_back(corner.radius, 100 * corner.accuracy);
  }
  return series;
}

/// Axes of certified accuracy, without series.
Plot accuracy_plot(const Axes& axes, int most_tics) {
  Plot plot;
  plot.x = {fmt::format("{} radius", norm_symbol(axes.norm)),
            0,
            axes.x_max,
            {},
            axes.norm == Norm::kLinf ? 5 : 3};
  for (const double radius : standard_radii(axes.x_max, axes.norm, most_tics)) {
    plot.x.tics.push_back({radius, format_step(axes.norm, radius)});
  }
  plot.y = {"certified accuracy (%)", 0, 100 * axes.y_max, round_tics(0, 100 * axes.y_max, 6), 1};
  return plot;
}

/// Returns whether the curve has what attacks left.
bool add_curve(const Curve& curve, const Axes& axes, size_t entry, Plot& plot) {
  if (!curve.attacked.empty()) plot.series.push_back(attacked_series(curve, axes, entry));
  plot.series.push_back(certified_series(curve, axes, entry));
  return !curve.attacked.empty();
}

}  // namespace

Chart accuracy_chart(const std::vector<Curve>& curves) {
  const Axes axes = Axes::around(curves, kOneHeadroom);
  Chart chart{"certified-accuracy", "certified accuracy against radius"};
  Plot plot = accuracy_plot(axes, 7);
  bool attacked = false;
  for (size_t i = 0; i < curves.size(); ++i) {
    if (curves[i].points.empty()) continue;
    attacked |= add_curve(curves[i], axes, chart.legend.size(), plot);
    chart.legend.push_back(curve_entry(curves[i].label, i));
  }
  if (chart.legend.empty()) throw Error("figure: no certificates to draw");
  if (attacked) chart.hints.emplace_back(kAttackedHint);
  chart.plots.push_back(std::move(plot));
  return chart;
}

Chart panel_chart(const std::string& name, const std::vector<Panel>& panels) {
  const std::vector<Curve> curves = all_curves(panels);
  if (curves.empty()) throw Error("figure: no certificates to draw");
  const std::vector<std::string> labels = labels_of(curves);
  const Axes axes = Axes::around(curves, kPanelHeadroom);
  Chart chart{name, "certified accuracy against radius"};
  chart.layout = panels.size() == 1 ? Chart::Layout::kOne : Chart::Layout::kRow;
  for (size_t i = 0; i < labels.size(); ++i) chart.legend.push_back(curve_entry(labels[i], i));
  bool attacked = false;
  for (const Panel& panel : panels) {
    Plot plot = accuracy_plot(axes, panels.size() == 1 ? 7 : 5);
    plot.title = panel.title;
    if (panels.size() > 1) {
      plot.width = kPanelWidth;
      plot.height = kPanelHeight;
    }
    for (const Curve& curve : panel.curves) {
      if (curve.points.empty()) continue;
      const auto entry = std::ranges::find(labels, curve.label) - labels.begin();
      attacked |= add_curve(curve, axes, static_cast<size_t>(entry), plot);
    }
    if (plot.series.empty()) plot.title += " (not certified yet)";
    chart.plots.push_back(std::move(plot));
  }
  if (attacked) chart.hints.emplace_back(kAttackedHint);
  return chart;
}

Chart difference_chart(const ComparedRuns& runs) {
  const std::vector<Curve> curves = {curve_of(runs.a, "A: " + runs.a.shown_name()),
                                     curve_of(runs.b, "B: " + runs.b.shown_name())};
  const Axes axes = Axes::around(curves, kPanelHeadroom);
  Chart chart = accuracy_chart(curves);
  chart.name = "difference";
  chart.layout = Chart::Layout::kStack;
  chart.description = "certified accuracy of both, and their difference, against radius";
  const size_t entry = chart.legend.size();
  chart.legend.push_back({"A − B", "var(--text)"});
  chart.hints = {"thin dashes: ends of the 95% interval"};
  Plot plot;
  plot.height = kDifferenceHeight;
  plot.x = chart.plots[0].x;
  plot.y.label = "A − B (points)";
  plot.y.digits = 1;
  std::vector<double> values = {0};
  const auto add = [&](const std::string& suffix, double Difference::*which) {
    Series series{Series::Kind::kLine, entry, suffix};
    for (const PairedAtRadius& at : runs.paired.curve) {
      series.x.push_back(printed_radius(at.radius, axes.norm));
      series.y.push_back(printed(at.difference.*which));
      series.path.emplace_back(at.radius, 100 * at.difference.*which);
      values.push_back(100 * at.difference.*which);
    }
    plot.series.push_back(std::move(series));
  };
  add("low", &Difference::low);
  add("high", &Difference::high);
  add("", &Difference::value);
  const ValueAxis range = value_axis(values);
  plot.y.from = range.bottom;
  plot.y.to = range.top;
  plot.y.tics = round_tics(range.bottom, range.top, 6);
  chart.plots[0].names_x = false;
  chart.plots.push_back(std::move(plot));
  return chart;
}

}  // namespace fedsmooth
