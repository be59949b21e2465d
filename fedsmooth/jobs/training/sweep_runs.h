// The experiments of a sweep, trained and certified from wherever an earlier sweep stopped.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fedsmooth/config/sweep.h"
#include "fedsmooth/jobs/context.h"

namespace fedsmooth::jobs {

/// What became of the experiments.
struct SweepOutcome {
  std::vector<size_t> done;  // their indices, in order
  size_t failed = 0;
  std::string interrupted;  // where, if so

  void add(const SweepOutcome& other);
};

/// How many groups of experiments keep the machine busy: three on a GPU, so that the server's part
/// of a round, a short kernel or the start of a certification leaves no gap; one elsewhere.
int64_t groups_at_once(const Context& context);

/// Run folders go to `out`, called after the experiments. Experiments that differ in nothing but
/// how they are certified are trained once. One that fails is reported and does not stop the
/// others. `at_once` groups of experiments that cannot be trained side by side are done at the same
/// time.
SweepOutcome run_experiments(const std::vector<NamedExperiment>& all,
                             const std::filesystem::path& out, int64_t at_once,
                             const Context& context);

}  // namespace fedsmooth::jobs
