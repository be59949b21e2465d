// fedsmooth plot RUN... --out F.svg|pdf|png: certified accuracy, training history or attack.
#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/jobs/load_run.h"
#include "fedsmooth/report/facts.h"
#include "fedsmooth/report/figures/figure.h"
#include "fedsmooth/report/figures/history_figure.h"

namespace fedsmooth::cli {
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

void add_plot(CLI::App& app, CommandContext& common) {
  struct Arguments {
    std::vector<std::string> runs;
    std::string out;
    std::string what = "certified";
    jobs::TableOptions tables;
  };
  auto a = std::make_shared<Arguments>();
  Command c(app, common, "plot", "draw certified accuracy against radius, or the training history",
            "  fedsmooth plot runs/a 'with noise=runs/b' --out figure.svg\n"
            "  fedsmooth plot runs/a runs/b --what training --out training.pdf");
  c.arguments("runs", a->runs,
              "run folders or certificate tables, published ones too; NAME=PATH gives a name");
  c.option("out", a->out, "figure to write: .svg, .pdf or .png");
  c.option("what", a->what,
           "certified (default), training (loss, noisy accuracy, time) or attack (in training)");
  add_norm(c, a->tables);
  c.on_run([a, &common] {
    if (a->out.empty()) throw Error("plot: needs --out");
    const std::vector<RunRecord> runs = jobs::load_runs(a->runs, a->tables);
    write_figure(draw(a->what, runs), a->out);
    print_result(common, {{"figure", a->out}, {"curves", runs.size()}}, a->out + "\n");
    return 0;
  });
}

}  // namespace fedsmooth::cli
