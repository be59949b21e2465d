// The facts that are shown beside the accuracy table, and warnings for the reader, in words. The
// page and the terminal show the same facts and warnings.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fedsmooth/report/report_run.h"
#include "fedsmooth/report/summary.h"

namespace fedsmooth {

/// Returns a share in percent, rounded to one decimal: 0.734 as "73.4".
std::string percent(double share);

/// Returns a share in percent, rounded down to one decimal, for a bound from below: 0.7349 as
/// "73.4".
std::string percent_at_least(double share);

/// Returns a proportion with its interval, in percent: "8.0% [5.8, 10.7]".
std::string format_proportion(const Proportion& share);

/// Returns "1 malicious client", "2 malicious clients".
std::string malicious_clients(int64_t count);

/// Returns a sentence that a run has no certificates yet, with the command that makes them or, if
/// its training has not ended, continues the training.
std::string not_certified(const RunRecord& run);

/// Returns the facts about a run, as names and values, in the order in which to show them.
std::vector<std::pair<std::string, std::string>> list_facts(const RunRecord& run);

/// Returns warnings, each a sentence of at most 88 characters: signs of a collapsed model, of
/// certificates that do not belong together or are contradicted by an attack, and of trouble in
/// training.
std::vector<std::string> list_warnings(const RunRecord& run);

}  // namespace fedsmooth
