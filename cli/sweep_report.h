// One report about a folder of runs, with the figures that its figures.toml asks for.
#pragma once

#include <filesystem>
#include <vector>

#include "fedsmooth/report/report_run.h"

namespace fedsmooth::cli {

/// Writes the page about all runs in `folder` that have begun, and beside it figures/NAME.svg and
/// .png for each figure. Returns the runs.
std::vector<ReportRun> write_sweep_report(const std::filesystem::path& folder,
                                          const std::filesystem::path& page);

}  // namespace fedsmooth::cli
