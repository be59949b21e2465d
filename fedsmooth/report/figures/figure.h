// Certified accuracy against radius, as in the paper's figures.
#pragma once

#include <vector>

#include "fedsmooth/report/figures/canvas.h"
#include "fedsmooth/report/figures/curves.h"
#include "fedsmooth/report/report_run.h"

namespace fedsmooth {

/// One step curve per run, and dashed in the same colour what attacks leave of its accuracy.
/// Refuses curves that are all empty.
Figure certified_figure(const std::vector<Curve>& curves);
Figure certified_figure(const std::vector<RunRecord>& runs);

}  // namespace fedsmooth
