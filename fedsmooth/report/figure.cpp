#include "fedsmooth/report/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/error.h"
#include "fedsmooth/report/canvas.h"
#include "fedsmooth/report/gnuplot.h"
#include "fedsmooth/report/text.h"

namespace fedsmooth {
namespace {

constexpr double kHeight = 460;
constexpr double kStepsDrawn = 1000;  // more cannot be seen and would bloat the SVG

struct Axes {
  double x_max;
  double y_max;  // share
};

Axes choose_axes(const std::vector<Curve>& curves) {
  double radius = 0, accuracy = 0;
  for (const Curve& curve : curves) {
    if (curve.points.empty()) throw Error("figure: no certificates in \"{}\"", curve.label);
    radius = std::max(radius, curve.points.back().radius);
    accuracy = std::max(accuracy, curve.points.front().accuracy);
  }
  const double room_for_legend = 1.2 * accuracy;
  return {radius > 0 ? 1.03 * radius : 1.0,
          std::clamp(std::ceil(10 * room_for_legend) / 10, 0.1, 1.0)};
}

double accuracy_beyond(const Curve& curve, double radius) {
  for (const CurvePoint& point : curve.points) {
    if (point.radius >= radius) return point.accuracy;
  }
  return 0;
}

/// Whether the top right corner is free. Curves only fall, so the box's left edge decides.
bool legend_fits_inside(const std::vector<Curve>& curves, const Axes& axes) {
  constexpr double kPlotWidth = kFigureWidth - 90, kPlotHeight = kHeight - 90, kSample = 90;
  size_t longest = 0;
  for (const Curve& curve : curves) {
    longest = std::max(longest, std::min(curve.label.size(), kLongestLabel));
  }
  const double box_width = (kSample + kCharacter * static_cast<double>(longest)) / kPlotWidth;
  const double box_height = kLine * static_cast<double>(curves.size() + 1) / kPlotHeight;
  return std::all_of(curves.begin(), curves.end(), [&](const Curve& curve) {
    const double left = std::max(0.0, 1 - box_width) * axes.x_max;
    return accuracy_beyond(curve, left) < (1 - box_height) * axes.y_max;
  });
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

/// The corners of the staircase, down to the axis. gnuplot's own steps would begin the dashes anew
/// at each corner.
std::string format_staircase(const std::vector<CurvePoint>& points) {
  const auto corner = [](double radius, double accuracy) {
    return fmt::format("{:.8g} {:.8g}\n", radius, 100 * accuracy);
  };
  std::string corners = corner(points[0].radius, points[0].accuracy);
  for (size_t i = 1; i < points.size(); ++i) {
    corners += corner(points[i - 1].radius, points[i].accuracy);
    corners += corner(points[i].radius, points[i].accuracy);
  }
  return corners + corner(points.back().radius, 0);
}

Figure make_figure(const std::vector<Curve>& curves) {
  if (curves.empty()) throw Error("figure: no runs to draw");
  const Axes axes = choose_axes(curves);
  const bool inside = legend_fits_inside(curves, axes);
  std::string script = fmt::format(
      "{}set key {} Left reverse samplen 3 spacing 1.15\n"
      "set xlabel 'ℓ₂ radius' offset 0,0.3\n"
      "set ylabel 'certified accuracy (%)'\n"
      "set xrange [0:{}]\n"
      "set yrange [0:{}]\n",
      axes_style(), inside ? "top right" : "below center vertical maxcols 1", axes.x_max,
      100 * axes.y_max);
  std::string plots;
  for (size_t i = 0; i < curves.size(); ++i) {
    script += fmt::format("$curve{} << END\n{}END\n", i,
                          format_staircase(thin_out(curves[i].points, axes.x_max)));
    plots += fmt::format("{} $curve{} with lines linewidth 2 {} title {}", i == 0 ? "plot" : ",", i,
                         curve_look(i), quote_for_gnuplot(shorten(curves[i].label, kLongestLabel)));
  }
  const double legend = inside ? 0 : kLine * static_cast<double>(curves.size() + 1);
  return {script + plots + "\n", kHeight + legend};
}

}  // namespace

void draw_certified_accuracy(const std::vector<Curve>& curves, const std::filesystem::path& out) {
  write_figure(make_figure(curves), out);
}

std::string certified_accuracy_svg(const std::vector<Curve>& curves) {
  return figure_svg(make_figure(curves));
}

}  // namespace fedsmooth
