// Certified accuracy against radius on the page: one step curve per run, whose values can be read
// off under the pointer and which can be switched off one by one. Without its script the chart is a
// picture with a legend that states the values at radius 0.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/report/figures/curves.h"

namespace fedsmooth {

/// HTML with an SVG. Curves without points are left out; an Error if all are.
std::string render_chart(const std::vector<Curve>& curves);

}  // namespace fedsmooth
