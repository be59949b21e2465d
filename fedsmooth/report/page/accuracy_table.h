// Tables of certified accuracy: several runs beside each other, or all that is known of one.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/report/report_run.h"

namespace fedsmooth {

struct AccuracyRow {
  std::string name;
  const RunRecord* run;
  std::string id;  // of the section about the run; empty: none
};

/// Returns a table with a line per run: certified accuracy in percent with its interval at up to
/// eight radii, average radius, abstentions. The best value of a column is marked; the page's
/// script sorts. Runs without certificates are left out.
std::string accuracy_table(const std::vector<AccuracyRow>& rows);

/// Returns a table with a line per radius: accuracy, interval, what holds with high probability,
/// and what attacks left.
std::string radius_table(const RunRecord& run);

}  // namespace fedsmooth
