// fedsmooth plot RUN... --out F.svg|pdf|png: certified accuracy against radius.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/tables.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/report/figure.h"

namespace fedsmooth::cli {

void add_plot(CLI::App& app, Common& common) {
  struct Arguments {
    std::vector<std::string> runs;
    std::string out;
  };
  auto a = std::make_shared<Arguments>();
  Command c(app, common, "plot", "draw certified accuracy against radius",
            "  fedsmooth plot runs/a runs/b --out figure.svg");
  c.arguments("runs", a->runs, "run folders or certificate tables");
  c.option("out", a->out, "figure to write: .svg, .pdf or .png");
  c.on_run([a, &common] {
    if (a->out.empty()) throw Error("plot: needs --out");
    std::vector<Curve> curves;
    for (const ReportRun& run : load_runs(a->runs)) {
      curves.push_back({run.name, accuracy_curve(run.rows)});
    }
    draw_certified_accuracy(curves, a->out);
    if (common.json) {
      fmt::print("{}\n", nlohmann::json{{"figure", a->out}, {"curves", curves.size()}}.dump());
    } else if (!common.quiet) {
      fmt::print("{}\n", a->out);
    }
    return 0;
  });
}

}  // namespace fedsmooth::cli
