#include "fedsmooth/report/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/error.h"
#include "fedsmooth/report/gnuplot.h"
#include "fedsmooth/report/text.h"

namespace fedsmooth {
namespace {

constexpr double kHeight = 460;
constexpr std::string_view kAttackedLook = "linewidth 1.4 dashtype (5,5)";
constexpr std::string_view kAttackedTitle = "thin: under attack, at most";
constexpr double kStepsDrawn = 1000;  // more cannot be seen and would bloat the SVG

struct Axes {
  double x_max;
  double y_max;  // share
};

Axes choose_axes(const std::vector<Curve>& curves) {
  double radius = 0, accuracy = 0;
  const auto widen = [&](const std::vector<CurvePoint>& points) {
    if (points.empty()) return;
    radius = std::max(radius, points.back().radius);
    accuracy = std::max(accuracy, points.front().accuracy);
  };
  for (const Curve& curve : curves) {
    widen(curve.points);
    if (!curve.points.empty()) widen(curve.attacked);
  }
  const double room_for_legend = 1.2 * accuracy;
  return {radius > 0 ? 1.03 * radius : 1.0,
          std::clamp(std::ceil(10 * room_for_legend) / 10, 0.1, 1.0)};
}

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

/// The last point of each of kStepsDrawn intervals. As a step holds its right end's accuracy, what
/// is left out can only make the curve lower.
std::vector<CurvePoint> thin_out(const std::vector<CurvePoint>& points, double x_max) {
  const auto interval = [x_max](const CurvePoint& point) {
    return std::floor(point.radius / x_max * kStepsDrawn);
  };
  std::vector<CurvePoint> kept;
  for (size_t i = 0; i < points.size(); ++i) {
    const bool end = i == 0 || i + 1 == points.size();
    if (end || interval(points[i]) != interval(points[i + 1])) kept.push_back(points[i]);
  }
  return kept;
}

std::string corner(double radius, double accuracy) {
  return fmt::format("{:.8g} {:.8g}\n", radius, 100 * accuracy);
}

/// The corners of the staircase, down to the axis. gnuplot's own steps would begin the dashes anew
/// at each corner.
std::string format_staircase(const std::vector<CurvePoint>& points) {
  std::string corners = corner(points[0].radius, points[0].accuracy);
  for (size_t i = 1; i < points.size(); ++i) {
    corners += corner(points[i - 1].radius, points[i].accuracy);
    corners += corner(points[i].radius, points[i].accuracy);
  }
  return corners + corner(points.back().radius, 0);
}

/// What an attack of one radius leaves is an upper bound for all larger ones, so that these steps
/// hold their left end's accuracy.
std::string format_upper_staircase(const std::vector<CurvePoint>& points, double x_max) {
  std::string corners;
  for (size_t i = 0; i < points.size(); ++i) {
    corners += corner(points[i].radius, points[i].accuracy);
    corners += corner(i + 1 < points.size() ? points[i + 1].radius : x_max, points[i].accuracy);
  }
  return corners;
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
  std::string data;
  std::vector<std::string> curves;  // as parts of gnuplot's command
  Legend legend;
};

Plots make_plots(const std::vector<Curve>& curves, const Axes& axes) {
  Plots plots;
  bool attacked = false;
  for (size_t i = 0; i < curves.size(); ++i) {
    const Curve& curve = curves[i];
    if (curve.points.empty()) continue;
    if (!curve.attacked.empty()) {
      plots.data += fmt::format("$attacked{} << END\n{}END\n", i,
                                format_upper_staircase(curve.attacked, axes.x_max));
      plots.curves.push_back(fmt::format("$attacked{} with lines {} linecolor rgb '{}' notitle", i,
                                         kAttackedLook, curve_colour(i)));
      attacked = true;
    }
    plots.data += fmt::format("$curve{} << END\n{}END\n", i,
                              format_staircase(thin_out(curve.points, axes.x_max)));
    plots.curves.push_back(fmt::format("$curve{} with lines linewidth 2 {} title {}", i,
                                       curve_look(i),
                                       quote_for_gnuplot(shorten(curve.label, kLongestLabel))));
    plots.legend.add(curve.label.size());
  }
  if (attacked) {
    plots.curves.push_back(fmt::format("keyentry with lines {} linecolor rgb '#777777' title '{}'",
                                       kAttackedLook, kAttackedTitle));
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
  const Axes axes = choose_axes(curves);
  const Plots plots = make_plots(curves, axes);
  if (plots.curves.empty()) throw Error("figure: no certificates to draw");
  const bool inside = legend_fits_inside(curves, axes, plots.legend);
  const double below = inside ? 0 : kLine * static_cast<double>(plots.legend.lines + 1);
  return {fmt::format("{}{}set key {} Left reverse samplen 3 spacing 1.15\n"
                      "set xlabel 'ℓ₂ radius' offset 0,0.3\n"
                      "set ylabel 'certified accuracy (%)'\n"
                      "set xrange [0:{}]\n"
                      "set yrange [0:{}]\n"
                      "plot {}\n",
                      axes_style(), plots.data,
                      inside ? "top right" : "below center vertical maxcols 1", axes.x_max,
                      100 * axes.y_max, fmt::join(plots.curves, ", ")),
          kHeight + below};
}

Figure certified_figure(const std::vector<ReportRun>& runs) {
  std::vector<Curve> curves;
  for (const ReportRun& run : runs) {
    curves.push_back({run.name});
    if (run.certified()) curves.back().points = accuracy_curve(run.rows);
    if (!run.attacks.empty()) curves.back().attacked = attacked_accuracy(run.attacks);
  }
  return certified_figure(curves);
}

}  // namespace fedsmooth
