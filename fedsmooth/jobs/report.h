// A page about runs, or about a folder of them with the figures that its figures.toml asks for.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fedsmooth/jobs/against.h"
#include "fedsmooth/jobs/context.h"
#include "fedsmooth/jobs/load_run.h"
#include "fedsmooth/report/report_run.h"

namespace fedsmooth::jobs {

/// Writes `out`, a page (.html) or a table (.md), about runs (see load_runs()) or a sweep's folder.
/// If `against` asks for it, each certified run is held against its classes, too. Returns the runs.
std::vector<RunRecord> report(const std::vector<std::string>& runs,
                              const std::filesystem::path& out, const Context& context,
                              const TableOptions& options = {}, const AgainstOptions& against = {});

/// Writes the page about all runs in `folder` that have begun, and beside it figures/NAME.svg and
/// .png for each figure. Warns of runs that cannot be read and leaves them out. Returns the runs.
std::vector<RunRecord> report_folder(const std::filesystem::path& folder,
                                     const std::filesystem::path& page, const Context& context,
                                     const TableOptions& options = {},
                                     const AgainstOptions& against = {});

}  // namespace fedsmooth::jobs
