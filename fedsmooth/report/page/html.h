// One self-contained HTML page about one or several runs: what they show in a sentence, live
// charts, tables, training history, provenance; and the short form of it for the terminal.
#pragma once

#include <string>
#include <vector>

#include "fedsmooth/report/figures/panels.h"
#include "fedsmooth/report/report_run.h"

namespace fedsmooth {

/// A figure that figures.toml asks for.
struct ReportFigure {
  std::string name, title, caption;
  std::vector<Panel> panels;
  std::vector<std::vector<size_t>> runs = {};  // per panel, indices of its curves' runs
};

struct ReportText {
  std::string title = {};  // of the page; empty: the runs' names
  std::vector<ReportFigure> figures = {};
};

/// Names and values are escaped; nothing is loaded from elsewhere. Figures replace the charts of
/// all runs at once, and a page about many runs has tables only; its parts about each are folded.
std::string render_report(const std::vector<RunRecord>& runs, const ReportText& text = {});

/// The table that `certify` and `make run` print: accuracy with intervals at the standard radii,
/// abstentions, wrong-but-certified share, ACR, distinct predictions, the worst client. At most 100
/// columns wide.
std::string render_table(const std::vector<RunRecord>& runs);

}  // namespace fedsmooth
