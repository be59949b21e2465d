#include "fedsmooth/report/figures/curves.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "fedsmooth/report/attacked.h"
#include "fedsmooth/report/figures/canvas.h"

namespace fedsmooth {
namespace {

constexpr std::string_view kAttackedLook = "linewidth 1.4 dashtype (5,5)";
constexpr double kStepsDrawn = 1000;

/// gnuplot's data. Its own steps would begin the dashes anew at each corner.
std::string format_corners(const std::vector<CurvePoint>& corners) {
  std::string lines;
  for (const CurvePoint& corner : corners) {
    lines += fmt::format("{:.8g} {:.8g}\n", corner.radius, 100 * corner.accuracy);
  }
  return lines;
}

}  // namespace

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

std::vector<CurvePoint> lower_corners(const std::vector<CurvePoint>& points) {
  std::vector<CurvePoint> corners = {points[0]};
  for (size_t i = 1; i < points.size(); ++i) {
    corners.push_back({points[i - 1].radius, points[i].accuracy});
    corners.push_back(points[i]);
  }
  corners.push_back({points.back().radius, 0});
  return corners;
}

std::vector<CurvePoint> upper_corners(const std::vector<CurvePoint>& points, double x_max) {
  std::vector<CurvePoint> corners;
  for (size_t i = 0; i < points.size(); ++i) {
    corners.push_back(points[i]);
    corners.push_back({i + 1 < points.size() ? points[i + 1].radius : x_max, points[i].accuracy});
  }
  return corners;
}

Curve curve_of(const RunRecord& run, const std::string& label) {
  Curve curve{label, {}, {}, run.norm};
  if (run.certified()) curve.points = accuracy_curve(run.rows);
  if (!run.attacks.empty()) curve.attacked = attacked_accuracy(run.attacks);
  return curve;
}

Axes Axes::around(const std::vector<Curve>& curves, double headroom) {
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
  return {radius > 0 ? 1.03 * radius : 1.0,
          std::clamp(std::ceil(10 * headroom * accuracy) / 10, 0.1, 1.0),
          curves.empty() ? Norm::kL2 : curves[0].norm};
}

std::string radius_axis(const Axes& axes, double most, bool named) {
  std::string tics;
  if (axes.norm == Norm::kLinf) {
    std::vector<std::string> list;
    for (const double radius : standard_radii(axes.x_max, axes.norm, static_cast<int>(most))) {
      list.push_back(
          fmt::format("'{}' {:.8g}", named ? format_step(axes.norm, radius) : "", radius));
    }
    tics = fmt::format("({})", fmt::join(list, ", "));
  } else {
    tics = fmt::format("{:.8g}", tic_step(axes.x_max, most));
  }
  const std::string label =
      named ? fmt::format("set xlabel '{} radius' offset 0,0.3\nset format x '%g'\n",
                          norm_symbol(axes.norm))
            : "unset xlabel\nset format x ''\n";
  return fmt::format("{}set xrange [0:{}]\nset xtics {}\n", label, axes.x_max, tics);
}

void add_curve(const Curve& curve, const Axes& axes, std::string_view id, size_t look,
               std::string_view title, CurvePlots& plots) {
  if (!curve.attacked.empty()) {
    plots.data += fmt::format("$attacked{} << END\n{}END\n", id,
                              format_corners(upper_corners(curve.attacked, axes.x_max)));
    plots.plots.push_back(fmt::format("$attacked{} with lines {} linecolor rgb '{}' notitle", id,
                                      kAttackedLook, curve_colour(look)));
  }
  plots.data += fmt::format("$curve{} << END\n{}END\n", id,
                            format_corners(lower_corners(thin_out(curve.points, axes.x_max))));
  plots.plots.push_back(
      fmt::format("$curve{} with lines linewidth 2 {} {}", id, curve_look(look), title));
}

std::string attacked_entry() {
  return fmt::format("keyentry with lines {} linecolor rgb '#777777' title '{}'", kAttackedLook,
                     kAttackedTitle);
}

}  // namespace fedsmooth
