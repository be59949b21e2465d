// Writes a page about runs, or about a folder of runs with the figures of its figures.toml.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fedsmooth/jobs/against.h"
#include "fedsmooth/jobs/context.h"
#include "fedsmooth/jobs/load_run.h"
#include "fedsmooth/report/report_run.h"

namespace fedsmooth::jobs {

/// Writes `out`, a page (.html) or a table (.md), about `runs`: arguments of load_runs(), or the
/// folder of a sweep. If `against` asks for it, each certified run is also certified against its
/// classes, see jobs/against.h. Returns the runs.
std::vector<RunRecord> report(const std::vector<std::string>& runs,
                              const std::filesystem::path& out, const Context& context,
                              const TableOptions& options = {}, const AgainstOptions& against = {});

/// Writes a page about all runs in `folder` that have begun, and figures/NAME.svg and .png beside
/// it for each figure. Warns about runs that cannot be read and leaves them out. Returns the runs.
std::vector<RunRecord> report_folder(const std::filesystem::path& folder,
                                     const std::filesystem::path& page, const Context& context,
                                     const TableOptions& options = {},
                                     const AgainstOptions& against = {});

}  // namespace fedsmooth::jobs
