// The facts beside the accuracy table, and what should worry the reader, in words. The page and the
// terminal show the same ones.
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

/// "1 malicious client", "2 malicious clients".
std::string malicious_clients(int64_t count);

/// That a run has no certificates yet, and the command that makes them or ends its training first.
std::string not_certified(const RunRecord& run);

/// Name and value, in the order in which to show them.
std::vector<std::pair<std::string, std::string>> list_facts(const RunRecord& run);

/// Signs of a collapsed model, of certificates that do not belong together or are contradicted by
/// an attack, of trouble in training; each is a sentence of at most 88 characters.
std::vector<std::string> list_warnings(const RunRecord& run);

}  // namespace fedsmooth
