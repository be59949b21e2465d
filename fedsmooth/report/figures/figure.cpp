#include "fedsmooth/report/figures/figure.h"

#include <fmt/format.h>

#include <algorithm>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/text.h"
#include "fedsmooth/report/figures/gnuplot.h"

namespace fedsmooth {
namespace {

constexpr double kHeight = 460;
constexpr double kRoomForLegend = 1.2;
constexpr double kMostTics = 10;

/// The height of the curve's highest line from `radius` on.
double accuracy_beyond(const Curve& curve, double radius) {
  double accuracy = curve.attacked.empty() ? 0 : curve.attacked.front().accuracy;
  for (const CurvePoint& point : curve.attacked) {
    if (point.radius <= radius) accuracy = point.accuracy;
  }
  for (const CurvePoint& point : curve.points) {
    if (point.radius >= radius) return std::max(accuracy, point.accuracy);
  }
  return accuracy;
}

struct Legend {
  size_t lines = 0;
  size_t width = 0;  // in characters

  void add(size_t label) {
    lines += 1;
    width = std::max(width, std::min(label, kLongestLabel));
  }
};

struct Plots {
  CurvePlots curves;
  Legend legend;
};

Plots make_plots(const std::vector<Curve>& curves, const Axes& axes) {
  Plots plots;
  bool attacked = false;
  for (size_t i = 0; i < curves.size(); ++i) {
    const Curve& curve = curves[i];
    if (curve.points.empty()) continue;
    add_curve(curve, axes, fmt::format("{}", i), i,
              "title " + quote_for_gnuplot(shorten(curve.label, kLongestLabel)), plots.curves);
    plots.legend.add(curve.label.size());
    attacked |= !curve.attacked.empty();
  }
  if (attacked) {
    plots.curves.plots.push_back(attacked_entry());
    plots.legend.add(kAttackedTitle.size());
  }
  return plots;
}

/// Whether the top right corner is free. Curves only fall, so the box's left edge decides.
bool legend_fits_inside(const std::vector<Curve>& curves, const Axes& axes, const Legend& legend) {
  constexpr double kPlotWidth = kFigureWidth - 90, kPlotHeight = kHeight - 90, kSample = 90;
  const double box_width = (kSample + kCharacter * static_cast<double>(legend.width)) / kPlotWidth;
  const double box_height = kLine * static_cast<double>(legend.lines + 1) / kPlotHeight;
  return std::all_of(curves.begin(), curves.end(), [&](const Curve& curve) {
    const double left = std::max(0.0, 1 - box_width) * axes.x_max;
    return curve.points.empty() || accuracy_beyond(curve, left) < (1 - box_height) * axes.y_max;
  });
}

}  // namespace

Figure certified_figure(const std::vector<Curve>& curves) {
  const Axes axes = Axes::around(curves, kRoomForLegend);
  const Plots plots = make_plots(curves, axes);
  if (plots.curves.plots.empty()) throw Error("figure: no certificates to draw");
  const bool inside = legend_fits_inside(curves, axes, plots.legend);
  // Below, an empty line keeps the legend off the axis.
  const double below = inside ? 0 : kLine * static_cast<double>(plots.legend.lines + 2);
  return {fmt::format("{}{}set key {} Left reverse samplen 3 spacing 1.15\n"
                      "{}set ylabel 'certified accuracy (%)'\n"
                      "set yrange [0:{}]\n"
                      "plot {}\n",
                      axes_style(), plots.curves.data,
                      inside ? "top right" : "below center vertical maxcols 1 title ' '",
                      radius_axis(axes, kMostTics), 100 * axes.y_max,
                      fmt::join(plots.curves.plots, ", ")),
          kHeight + below};
}

Figure certified_figure(const std::vector<RunRecord>& runs) {
  std::vector<Curve> curves;
  for (const RunRecord& run : runs) curves.push_back(curve_of(run, run.shown_name()));
  return certified_figure(curves);
}

}  // namespace fedsmooth
