// Certified accuracy of many runs, a line for each.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/report/report_run.h"

namespace fedsmooth {

/// Accuracy at up to eight radii, average certified radius, abstentions, and how many classes are
/// ever answered.
std::string render_comparison(const std::vector<RunRecord>& runs);

/// The same radii as a table in Markdown, with 95% intervals.
std::string render_markdown(const std::vector<RunRecord>& runs);

}  // namespace fedsmooth
