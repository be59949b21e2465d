// Many experiments: trained, certified, and reported on together.
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
  std::string out;   // where the run folders go; empty: runs/NAME, runs/NAME-sweep for a file
  int64_t side_by_side = 1;  // parts of the ranks, each of which does a share of the experiments
  int64_t at_once = 0;       // groups of experiments; 0: as many as keep the machine busy
};

struct SweepResult {
  std::filesystem::path page;     // written if any experiment is done
  std::vector<RunRecord> runs;    // those that the page is about
  std::vector<std::string> done;  // run folders of this sweep's experiments
  size_t failed = 0;              // experiments of which a warning said why
  size_t total = 0;
};

/// What a sweep is to do.
struct SweepPlan {
  std::vector<NamedExperiment> experiments;
  std::filesystem::path out;  // where the run folders go
  std::string figures;        // how to draw the report's figures, as TOML; empty: none
};

/// Reads the experiments and refuses what cannot be done, before the first one is begun.
SweepPlan plan_sweep(const SweepArguments& arguments, const Overrides& overrides,
                     const Context& context);

/// What is left of a sweep, with the time it takes predicted from short trials.
struct SweepDryRun {
  size_t experiments = 0;                 // in all
  int64_t trainings = 0, rounds = 0;      // that are left
  int64_t certifications = 0, votes = 0;  // that are left
  bool at_most = false;                   // votes may end early
  double seconds = 0;                     // one after another
  int64_t disk_bytes = 0;                 // of the run folders, without the report
  std::string device;
};

/// Nothing is written. By one process.
SweepDryRun dry_run_sweep(const SweepArguments& arguments, const Overrides& overrides,
                          const Context& context);

/// Does what is left of the experiments. Where ranks do it together, rank 0 has the result.
SweepResult sweep(const SweepArguments& arguments, const Overrides& overrides,
                  const Context& context);

}  // namespace fedsmooth::jobs
