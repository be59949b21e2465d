// fedsmooth bench train|certify [EXPERIMENT.toml]: throughput of this build on this machine, as
// JSON.
#include "fedsmooth/jobs/bench.h"

#include <fmt/format.h>

#include "cli/options.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/json.h"

namespace fedsmooth::cli {

void add_bench(CLI::App& app, CommandContext& common) {
  struct Arguments {
    std::string what, path;
  };
  auto a = std::make_shared<Arguments>();
  Command c(app, common, "bench", "throughput of this build on this machine, as JSON",
            "  fedsmooth bench train --attack.estimator=one-point\n"
            "  fedsmooth bench certify\n"
            "  fedsmooth bench certify --model.name=resnet20 --threads 1");
  c.argument("what", a->what, "train or certify");
  c.argument("experiment", a->path, "experiment file", /*required=*/false);
  c.on_run([a, &common](const Overrides& overrides) {
    if (a->what != "train" && a->what != "certify") {
      throw Error("bench {}: there are train and certify", a->what);
    }
    Experiment experiment = a->path.empty() ? Experiment{} : read_experiment(a->path);
    apply_overrides(experiment, overrides);
    fmt::print("{}\n",
               dump_json(a->what == "train" ? jobs::bench_train(experiment, common.context)
                                            : jobs::bench_certify(experiment, common.context)));
    return 0;
  });
}

}  // namespace fedsmooth::cli
