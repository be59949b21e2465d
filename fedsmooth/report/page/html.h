// One self-contained HTML page about one or several runs: curves, tables, training history,
// provenance; and the short form of it for the terminal.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fedsmooth/report/figures/canvas.h"
#include "fedsmooth/report/report_run.h"

namespace fedsmooth {

struct NamedFigure {
  std::string name;
  std::string caption;
  std::optional<Figure> figure;  // none: no run of it is certified, which the page says
};

/// Names and values are escaped; nothing is loaded from elsewhere. Needs gnuplot for the figures.
/// `figures` stand in for those that show all runs at once, as do tables where runs are too many;
/// the parts about each of many runs are folded.
std::string render_report(const std::vector<RunRecord>& runs,
                          const std::vector<NamedFigure>& figures = {});

/// The table that `certify` and `make run` print: accuracy with intervals at the standard radii,
/// abstentions, wrong-but-certified share, ACR, distinct predictions, the worst client. At most 100
/// columns wide.
std::string render_table(const std::vector<RunRecord>& runs);

}  // namespace fedsmooth
