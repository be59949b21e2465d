// A sweep trains and certifies many experiments, each into a run folder, and writes one report
// about them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fedsmooth/config/sweep.h"
#include "fedsmooth/jobs/context.h"
#include "fedsmooth/report/report_run.h"

namespace fedsmooth::jobs {

struct SweepArguments {
  std::string path;  // folder of experiment files, or one file
  std::string out;   // folder of the run folders; empty: runs/NAME, runs/NAME-sweep for a file
  /// Number of parts into which the ranks are divided, each for a share of the experiments.
  int64_t side_by_side = 1;
  /// Number of sets of experiments done at the same time, where a set holds the experiments that
  /// can be trained side by side; 0: 3 on a GPU, 1 on the CPU or with several ranks.
  int64_t at_once = 0;
};

struct SweepResult {
  std::filesystem::path page;     // written if any experiment is done
  std::vector<RunRecord> runs;    // runs on the page
  std::vector<std::string> done;  // run folders of this sweep's finished experiments
  size_t failed = 0;              // number of failed experiments; a warning says why each failed
  size_t total = 0;
};

/// The experiments of a sweep and where their results go.
struct SweepPlan {
  std::vector<NamedExperiment> experiments;
  std::filesystem::path out;  // folder of the run folders
  std::string figures;        // text of figures.toml for the report; empty: none
};

/// Reads the experiments, before any of them begins. Throws an Error if arguments are impossible,
/// two experiments have the same name, one cannot be certified, or the folder `out` is a run.
SweepPlan plan_sweep(const SweepArguments& arguments, const Overrides& overrides,
                     const Context& context);

/// The work that is left of a sweep, with a time predicted from short trials.
struct SweepDryRun {
  size_t experiments = 0;                 // in all
  int64_t trainings = 0, rounds = 0;      // left to do
  int64_t certifications = 0, votes = 0;  // left to do
  bool at_most = false;                   // `votes` is an upper bound, as votes may end early
  double seconds = 0;                     // for one experiment after another
  int64_t disk_bytes = 0;                 // of the run folders, without the report
  std::string device;
};

/// Predicts the work that is left of a sweep, as if this process did all of it. Nothing is written.
SweepDryRun dry_run_sweep(const SweepArguments& arguments, const Overrides& overrides,
                          const Context& context);

/// Trains and certifies what is left of the experiments, and writes the report. All ranks must call
/// it; only rank 0 returns the whole result. Throws Interrupted when stopped.
SweepResult sweep(const SweepArguments& arguments, const Overrides& overrides,
                  const Context& context);

}  // namespace fedsmooth::jobs
