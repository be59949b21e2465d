// The part of the page that is about one run alone.
#pragma once

#include <string>

#include "fedsmooth/report/report_run.h"

namespace fedsmooth {

/// Warnings, facts, accuracy by class and by client, confidence, provenance, as far as the run has
/// them.
std::string render_run_section(const RunRecord& run);

}  // namespace fedsmooth
