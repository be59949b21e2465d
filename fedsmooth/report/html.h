// One self-contained HTML page about one or several runs: curves, tables, training
// history, provenance; and the short
// form of it for the terminal.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/report/report_run.h"

namespace fedsmooth {

/// Names and values are escaped; nothing is loaded from elsewhere. Needs gnuplot for the figures.
std::string render_report(const std::vector<ReportRun>& runs);

/// The table that `certify` and `make run` print: accuracy with intervals at the standard radii,
/// abstentions, wrong-but-certified share, ACR, distinct predictions, the worst client. At most 100
/// columns wide.
std::string render_table(const std::vector<ReportRun>& runs);

}  // namespace fedsmooth
