// What `--dry-run` prints.
#pragma once

#include "cli/options.h"
#include "fedsmooth/jobs/dry_run.h"
#include "fedsmooth/jobs/sweep.h"

namespace fedsmooth::cli {

/// `unit` is what was counted, in the plural.
void print_dry_run(const jobs::DryRun& found, const std::string& unit,
                   const CommandContext& common);
void print_dry_run(const jobs::SweepDryRun& found, const CommandContext& common);

}  // namespace fedsmooth::cli
