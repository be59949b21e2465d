// fedsmooth show EXPERIMENT_OR_RUN: the experiment with every default filled in, or the names of
// those that it sweeps over.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "fedsmooth/base/json.h"
#include "fedsmooth/config/sweep.h"
#include "fedsmooth/jobs/training.h"

namespace fedsmooth::cli {
namespace {

void show_experiment(const Experiment& experiment, const CommandContext& common) {
  const std::string text = format_with_defaults(experiment);
  if (common.json) {
    fmt::print("{}\n", dump_json({{"experiment", text}}));
  } else {
    fmt::print("{}", text);
  }
}

void show_names(const std::vector<NamedExperiment>& all, const CommandContext& common) {
  nlohmann::json names = nlohmann::json::array();
  for (const NamedExperiment& one : all) {
    names.push_back(one.name);
    if (!common.json) fmt::print("{}\n", one.name);
  }
  if (common.json) fmt::print("{}\n", dump_json({{"experiments", names}}));
}

}  // namespace

void add_show(CLI::App& app, CommandContext& common) {
  auto path = std::make_shared<std::string>();
  Command c(app, common, "show",
            "print an experiment with every default filled in, and marked where it differs",
            "  fedsmooth show experiment.toml --certify.n=1000\n"
            "  fedsmooth show runs/quickstart/smoothadv");
  c.argument("experiment_or_run", *path,
             "experiment file, or a run folder; for a file with a [sweep], the names of its "
             "experiments are printed");
  c.on_run([path, &common](const Overrides& overrides) {
    Sweep sweep = read_sweep(jobs::experiment_file(*path));
    for (const auto& [key, value] : overrides) set_key(sweep, key, value);
    if (sweep.grids.empty()) {
      show_experiment(sweep.base, common);
    } else {
      show_names(expand(sweep), common);
    }
    return 0;
  });
}

}  // namespace fedsmooth::cli
