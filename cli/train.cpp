// fedsmooth train EXPERIMENT.toml: Algorithm 1, into a run folder.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/rank_jobs.h"
#include "cli/training.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/base/json.h"
#include "fedsmooth/base/sha256.h"
#include "fedsmooth/records/rounds.h"
#include "fedsmooth/records/run.h"

namespace fedsmooth::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string experiment, out;
  bool resume = false;
};

nlohmann::json summary_json(const fs::path& folder) {
  const std::vector<RoundRow> rows = read_rounds(folder / "rounds.tsv");
  return {{"run", folder.string()},
          {"rounds", rows.size()},
          {"loss", rows.empty() ? 0.0 : rows.back().loss},
          {"model_sha256", sha256(read_file(folder / "model.safetensors"))}};
}

int train_and_tell(const Arguments& a, Experiment& experiment, const Common& common) {
  const fs::path out =
      a.out.empty() ? fs::path("runs") / fs::path(a.experiment).stem() : fs::path(a.out);
  keep_drawn_seed(experiment, out);
  const bool trained = train_run({experiment, out, a.resume}, common);
  if (common.json) {
    fmt::print("{}\n", dump_json(summary_json(out)));
  } else if (!common.quiet) {
    fmt::print("{}{}\n", out.string(), trained ? "" : ": done already");
  }
  return 0;
}

int run_train(const Arguments& a, const Overrides& overrides, const Common& common) {
  Experiment experiment;
  const auto read = [&] {
    experiment = read_experiment(a.experiment);
    apply_overrides(experiment, overrides);
    check_certification(experiment);
    return describe_experiment(experiment);
  };
  return run_on_ranks(common, read, [&] { return train_and_tell(a, experiment, common); });
}

}  // namespace

void add_train(CLI::App& app, Common& common) {
  auto a = std::make_shared<Arguments>();
  Command c(app, common, "train", "train a classifier, federated or centralized, into a run folder",
            "  fedsmooth train experiments/quickstart/smoothadv.toml\n"
            "  fedsmooth train e.toml --out runs/e --train.method=gaussian --resume\n"
            "  mpirun -n 4 fedsmooth train e.toml");
  c.argument("experiment", a->experiment, "experiment file");
  c.option("out", a->out, "run folder; runs/NAME for NAME.toml if left out");
  c.flag("resume", a->resume, "continue from the last checkpoint");
  c.take_ranks();
  c.on_run([a, &common](const Overrides& overrides) { return run_train(*a, overrides, common); });
}

}  // namespace fedsmooth::cli
