// Certified accuracy against radius as charts: all runs on one pair of axes, panels side by side,
// or two runs with their difference.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/report/figures/panels.h"
#include "fedsmooth/report/page/chart.h"
#include "fedsmooth/report/paired.h"

namespace fedsmooth {

/// Draws a step curve for each run, and thin dashes in its colour for what attacks leave. Leaves
/// out curves without points; throws an Error if none is left.
Chart accuracy_chart(const std::vector<Curve>& curves);

/// Draws a plot for each panel, with common axes and one legend. Throws an Error if no panel has a
/// curve.
Chart panel_chart(const std::string& name, const std::vector<Panel>& panels);

/// Draws both curves, and below them A - B with the ends of its 95% interval.
Chart difference_chart(const ComparedRuns& runs);

}  // namespace fedsmooth
