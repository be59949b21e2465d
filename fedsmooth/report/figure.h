// Certified accuracy against radius, as in the paper's figures.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/report/canvas.h"
#include "fedsmooth/report/report_run.h"
#include "fedsmooth/report/summary.h"

namespace fedsmooth {

struct Curve {
  std::string label;
  std::vector<CurvePoint> points;    // as from accuracy_curve(); without any the run is left out
  std::vector<CurvePoint> attacked;  // as from attacked_accuracy(); may be empty
};

/// One step curve per run, and dashed in the same colour what attacks leave of its accuracy.
/// Refuses curves that are all empty.
Figure certified_figure(const std::vector<Curve>& curves);
Figure certified_figure(const std::vector<ReportRun>& runs);

}  // namespace fedsmooth
