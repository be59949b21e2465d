#include "fedsmooth/jobs/plot.h"

#include "fedsmooth/base/error.h"
#include "fedsmooth/report/facts.h"
#include "fedsmooth/report/figures/figure.h"
#include "fedsmooth/report/figures/history_figure.h"

namespace fedsmooth::jobs {
namespace {

Figure draw(const std::string& what, const std::vector<RunRecord>& runs) {
  if (what == "training") return training_figure(runs);
  if (what == "attack") return attack_figure(runs);
  if (what != "certified") {
    throw Error("--what={}: must be certified, training or attack", what);
  }
  for (const RunRecord& run : runs) {
    if (!run.certified()) {
      throw Error("{}: {}", run.name, not_certified(run));
    }
  }
  return certified_figure(runs);
}

}  // namespace

int64_t plot(const PlotArguments& a) {
  if (a.out.empty()) throw Error("plot: needs --out");
  const std::vector<RunRecord> runs = load_runs(a.runs, a.tables);
  write_figure(draw(a.what, runs), a.out);
  return std::ssize(runs);
}

}  // namespace fedsmooth::jobs
