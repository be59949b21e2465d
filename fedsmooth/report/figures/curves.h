// Certified accuracy as gnuplot draws it: what figures with one panel and with several share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fedsmooth/report/attacked.h"
#include "fedsmooth/report/report_run.h"
#include "fedsmooth/report/summary.h"

namespace fedsmooth {

struct Curve {
  std::string label;
  std::vector<CurvePoint> points;    // as from accuracy_curve(); without any the run is left out
  std::vector<CurvePoint> attacked;  // as from attacked_accuracy(); may be empty
  Norm norm = Norm::kL2;             // of the radii; that of all curves in a figure
};

/// Without points if the run is not certified.
Curve curve_of(const RunRecord& run, const std::string& label);

struct Axes {
  double x_max;
  double y_max;  // share
  Norm norm = Norm::kL2;

  /// Wide enough for all curves, and `headroom` times as high as the highest.
  static Axes around(const std::vector<Curve>& curves, double headroom);
};

/// The last point of each of 1000 intervals of radius: more cannot be seen. As a step holds its
/// right end's accuracy, what is left out can only make the curve lower.
std::vector<CurvePoint> thin_out(const std::vector<CurvePoint>& points, double x_max);

/// The corners of the staircase of certified accuracy, down to the axis.
std::vector<CurvePoint> lower_corners(const std::vector<CurvePoint>& points);

/// The corners of what attacks leave, up to `x_max`: an upper bound for all larger radii, so that
/// steps hold their left end's accuracy.
std::vector<CurvePoint> upper_corners(const std::vector<CurvePoint>& points, double x_max);

/// The axis of radii as gnuplot's commands: its range, at most `most` tics, and, if `named`, their
/// labels and what it is called.
std::string radius_axis(const Axes& axes, double most, bool named = true);

/// Parts of gnuplot's script: data blocks, and what follows `plot`, to be joined by commas.
struct CurvePlots {
  std::string data;
  std::vector<std::string> plots;
};

/// Adds the step curve with the look of number `look`, and dashed in the same colour what attacks
/// leave. Its blocks are named after `id`; `title` is gnuplot's option.
void add_curve(const Curve& curve, const Axes& axes, std::string_view id, size_t look,
               std::string_view title, CurvePlots& plots);

/// The legend's word on dashed curves, and its entry.
constexpr std::string_view kAttackedTitle = "thin: under attack, at most";
std::string attacked_entry();

}  // namespace fedsmooth
