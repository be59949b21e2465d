// The parts of a run's section about threats beside perturbations: malicious clients, with a table
// over (m, r) and a curve for each m, and answers that must not be given.
#pragma once

#include <string>

#include "fedsmooth/report/report_run.h"

namespace fedsmooth {

/// HTML; empty for one network. Needs gnuplot.
std::string render_threat_section(const RunRecord& run);

/// HTML; empty for a run that was not held against given classes.
std::string render_against_section(const RunRecord& run);

}  // namespace fedsmooth
