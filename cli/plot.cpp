// fedsmooth plot RUN... --out F.svg|pdf|png: certified accuracy, training history or attack.
#include "fedsmooth/jobs/plot.h"

#include <nlohmann/json.hpp>

#include "cli/options.h"

namespace fedsmooth::cli {

void add_plot(CLI::App& app, CommandContext& common) {
  struct Arguments : jobs::PlotArguments {
    std::string path;
  };
  auto a = std::make_shared<Arguments>();
  Command c(app, common, "plot", "draw certified accuracy against radius, or the training history",
            "  fedsmooth plot runs/a 'with noise=runs/b' --out figure.svg\n"
            "  fedsmooth plot runs/a runs/b --what training --out training.pdf");
  c.arguments("runs", a->runs,
              "run folders or certificate tables, published ones too; NAME=PATH gives a name");
  c.option("out", a->path, "figure to write: .svg, .pdf or .png");
  c.option("what", a->what,
           "certified (default), training (loss, noisy accuracy, time) or attack (in training)");
  add_norm(c, a->tables);
  c.on_run([a, &common] {
    a->out = a->path;
    const int64_t curves = jobs::plot(*a);
    print_result(common, {{"figure", a->path}, {"curves", curves}}, a->path + "\n");
    return 0;
  });
}

}  // namespace fedsmooth::cli
