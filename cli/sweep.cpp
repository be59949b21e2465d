// fedsmooth sweep FOLDER_OR_FILE: trains and certifies many experiments, and reports on all.
#include "fedsmooth/jobs/sweep.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/advice.h"
#include "cli/dry_run.h"
#include "cli/summary.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/json.h"
#include "fedsmooth/jobs/ranks/rank_jobs.h"
#include "fedsmooth/report/comparison.h"

namespace fedsmooth::cli {
namespace {

void print_sweep(const jobs::SweepResult& result, const CommandContext& common) {
  if (common.json) {
    nlohmann::json summary = {
        {"report", result.page.string()}, {"runs", result.done}, {"failed", result.failed}};
    for (const RunRecord& run : result.runs) summary["results"].push_back(summary_json(run));
    fmt::print("{}\n", dump_json(summary));
  } else {
    fmt::print("{}\n{}\n", render_comparison(result.runs), result.page.string());
    suggest_opening(common, result.page);
  }
}

struct SweepCommandArguments : jobs::SweepArguments {
  bool dry_run = false;
};

int run_sweep(const SweepCommandArguments& a, const Overrides& overrides,
              const CommandContext& common) {
  if (a.dry_run) {
    if (jobs::ranks_of(common.context).size() > 1) {
      throw Error("--dry-run: runs in one process; start it without mpirun");
    }
    print_dry_run(jobs::dry_run_sweep(a, overrides, common.context), common);
    return 0;
  }
  const jobs::SweepResult result = jobs::sweep(a, overrides, common.context);
  if (!jobs::ranks_of(common.context).leads()) return 0;
  if (!result.done.empty()) print_sweep(result, common);
  if (result.failed > 0) {
    throw Error("sweep: {} of {} experiments failed", result.failed, result.total);
  }
  return 0;
}

}  // namespace

void add_sweep(CLI::App& app, CommandContext& common) {
  auto a = std::make_shared<SweepCommandArguments>();
  Command c(app, common, "sweep", "train and certify many experiments, and report on all of them",
            "  fedsmooth sweep experiments/quickstart\n"
            "  fedsmooth sweep experiments/quickstart --dry-run\n"
            "  fedsmooth sweep experiments/paper/homogeneous.toml --smoothing.sigma=0.25\n"
            "  mpirun -n 8 fedsmooth sweep experiments/paper/homogeneous.toml --side-by-side 2");
  c.argument("folder_or_file", a->path, "folder of experiment files, or one file");
  c.option(
      "out", a->out,
      "where the run folders go; runs/NAME of a folder, runs/NAME-sweep of a file if left out");
  c.flag("dry-run", a->dry_run, "print what is left, with predicted time and disk, and do nothing");
  c.option("side-by-side", a->side_by_side,
           "parts into which ranks are divided, each for a share of the experiments");
  c.renamed_option("groups", "side-by-side");
  c.option("at-once", a->at_once,
           "trainings of different kinds at the same time; 0: three on a GPU, one on the CPU");
  c.allow_ranks();
  c.on_run([a, &common](const Overrides& overrides) { return run_sweep(*a, overrides, common); });
}

}  // namespace fedsmooth::cli
