// One self-contained HTML page about one or several runs: curves, tables, provenance; and the short
// form of it for the terminal.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fedsmooth/report/certificates.h"

namespace fedsmooth {

struct ReportRun {
  std::string name;
  std::vector<std::string> class_names;  // may be empty: classes then go by number
  std::vector<CertificateRow> rows;      // at least one
  std::vector<std::pair<std::string, std::string>> provenance;  // shown as a table, in this order
};

/// Names and values are escaped; nothing is loaded from elsewhere. Needs gnuplot for the figure.
std::string render_report(const std::vector<ReportRun>& runs);

/// The table that `certify` and `make run` print: accuracy with intervals at the standard radii,
/// abstentions, wrong-but-certified share, ACR, distinct predictions. At most 100 columns wide.
std::string render_table(const std::vector<ReportRun>& runs);

}  // namespace fedsmooth
