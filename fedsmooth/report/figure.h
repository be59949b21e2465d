// Figures, drawn by gnuplot.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fedsmooth/report/summary.h"

namespace fedsmooth {

struct Curve {
  std::string label;
  std::vector<CurvePoint> points;  // as from accuracy_curve()
};

/// Certified accuracy against radius, one step curve per run, as in the paper's figures. The format
/// follows from the ending: .svg, .pdf or .png; any other is refused.
void draw_certified_accuracy(const std::vector<Curve>& curves, const std::filesystem::path& out);

/// The same as an SVG fragment to put into an HTML page: as wide as its container, transparent, and
/// without ids, so that a page may hold several.
std::string certified_accuracy_svg(const std::vector<Curve>& curves);

}  // namespace fedsmooth
