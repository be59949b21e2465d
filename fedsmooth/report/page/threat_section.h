// The part of a run's section about malicious clients and perturbations at once: a table over (m,
// r) and a curve for each m.
#pragma once

#include <string>

#include "fedsmooth/report/report_run.h"

namespace fedsmooth {

/// HTML; empty for one network. Needs gnuplot.
std::string render_threat_section(const RunRecord& run);

}  // namespace fedsmooth
