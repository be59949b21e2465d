// What every command ends with that writes a table of certificates.
#pragma once

#include <filesystem>

#include "cli/options.h"
#include "fedsmooth/jobs/against.h"
#include "fedsmooth/report/report_run.h"

namespace fedsmooth::cli {

/// Returns the numbers of a run's certificates as JSON, or states that the run has none.
nlohmann::json summary_json(const RunRecord& run);

/// Returns what was calibrated, and how the sets did on other images.
nlohmann::json conformal_json(const ConformalCalibration& calibration);

/// Prints the table of certified accuracy, what is certified against classes if that is asked, and
/// where the file is, or the summary as JSON.
void print_summary(const std::filesystem::path& table, const CommandContext& common,
                   const jobs::AgainstOptions& against = {});

}  // namespace fedsmooth::cli
