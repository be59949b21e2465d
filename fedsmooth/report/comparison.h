// Certified accuracy of many runs, a line for each.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/report/report_run.h"

namespace fedsmooth {

/// Returns a table for the terminal: accuracy at up to eight radii, average certified radius,
/// abstentions, and the number of classes that are answered at least once.
std::string render_comparison(const std::vector<RunRecord>& runs);

/// Returns a table in Markdown with accuracy at the radii of render_comparison() and 95% intervals.
std::string render_markdown(const std::vector<RunRecord>& runs);

}  // namespace fedsmooth
