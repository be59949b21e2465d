// Many experiments: trained, certified, and reported on together.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fedsmooth/config/experiment.h"
#include "fedsmooth/jobs/context.h"
#include "fedsmooth/report/report_run.h"

namespace fedsmooth::jobs {

struct SweepArguments {
  std::string path;          // folder of experiment files, or one file
  std::string out;           // where the run folders go; empty: runs/NAME
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

/// Does what is left of the experiments. Where ranks do it together, rank 0 has the result.
SweepResult sweep(const SweepArguments& arguments, const Overrides& overrides,
                  const Context& context);

}  // namespace fedsmooth::jobs
