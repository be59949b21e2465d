// fedsmooth train EXPERIMENT_OR_RUN: Algorithm 1, into a run folder.
#include <nlohmann/json.hpp>

#include "cli/advice.h"
#include "cli/dry_run.h"
#include "cli/options.h"
#include "fedsmooth/base/text.h"
#include "fedsmooth/jobs/ranks/rank_jobs.h"
#include "fedsmooth/jobs/training.h"

namespace fedsmooth::cli {
namespace {

namespace fs = std::filesystem;

struct TrainCommandArguments {
  std::string experiment, out;
  bool resume = false;
  bool dry_run = false;
};

// The run has its own copy of the experiment, with what the command line changed.
std::string resuming_arguments(const fs::path& run, const CommandContext& common) {
  const std::string& device = common.context.device;
  return fmt::format("train --resume {}{}", shell_word(run.string()),
                     device == "auto" ? "" : " --device " + device);
}

void print_run(const jobs::TrainedRun& run, const fs::path& out, const CommandContext& common) {
  print_result(common,
               {{"run", out.string()},
                {"rounds", run.rounds},
                {"loss", run.loss},
                {"model_sha256", run.model_sha256}},
               out.string() + (run.is_new ? "\n" : ": done already\n"));
}

int run_train(const TrainCommandArguments& a, const Overrides& overrides,
              const CommandContext& common) {
  const auto [file, folder] = jobs::find_training(a.experiment, a.out);
  Experiment experiment;
  const auto read = [&, file = file] {
    experiment = read_experiment(file);
    apply_overrides(experiment, overrides);
    check_certification(experiment);
    return jobs::describe_experiment(experiment);
  };
  return jobs::run_on_ranks(common.context, read, [&, folder = folder] {
    if (a.dry_run) {
      print_dry_run(jobs::dry_run_train(experiment, common.context), "client steps", common);
    } else {
      note_if_nothing_to_resume(common, a.resume, folder / "experiment.toml");
      resume_by(resuming_arguments(folder, common));
      print_run(jobs::train({experiment, folder, a.resume}, common.context), folder, common);
      suggest_next(common, "certify " + shell_word(folder.string()));
    }
    return 0;
  });
}

}  // namespace

void add_train(CLI::App& app, CommandContext& common) {
  auto a = std::make_shared<TrainCommandArguments>();
  Command c(app, common, "train", "train a classifier, federated or centralized, into a run folder",
            "  fedsmooth train experiments/quickstart/smoothadv.toml\n"
            "  fedsmooth train e.toml --out runs/e --train.method=gaussian\n"
            "  fedsmooth train --resume runs/e\n"
            "  mpirun -n 4 fedsmooth train e.toml");
  c.argument("experiment_or_run", a->experiment,
             "experiment file; or a run folder, whose own experiment it continues");
  c.option("out", a->out, "run folder; runs/NAME for NAME.toml if left out");
  c.flag("resume", a->resume, "continue from the last checkpoint");
  c.flag("dry-run", a->dry_run, "print steps, predicted time and memory, and do nothing");
  c.allow_ranks();
  c.on_run([a, &common](const Overrides& overrides) { return run_train(*a, overrides, common); });
}

}  // namespace fedsmooth::cli
