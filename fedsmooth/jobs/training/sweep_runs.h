// Trains and certifies the experiments of a sweep, continuing where an earlier sweep stopped.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fedsmooth/config/sweep.h"
#include "fedsmooth/jobs/context.h"

namespace fedsmooth::jobs {

/// The outcome of several experiments.
struct SweepOutcome {
  std::vector<size_t> done;  // indices of the finished experiments, ascending
  size_t failed = 0;         // number of failed experiments
  std::string interrupted;   // message of an interruption; empty: none

  /// Adds the outcome of other experiments. An interruption of this outcome is kept.
  void add(const SweepOutcome& other);
};

/// Returns the number of sets of experiments that keep the machine busy: three on a GPU, so that
/// the server's part of a round, a short kernel or the start of a certification leaves no gap; one
/// elsewhere.
int64_t groups_at_once(const Context& context);

/// Trains and certifies the experiments into run folders in `out`, which are named after them.
/// Experiments that differ only in how they are certified are trained once. One that fails causes a
/// warning and does not stop the others. Experiments that can be trained side by side are a set;
/// `at_once` sets are done at the same time, each in a thread of its own.
SweepOutcome run_experiments(const std::vector<NamedExperiment>& all,
                             const std::filesystem::path& out, int64_t at_once,
                             const Context& context);

}  // namespace fedsmooth::jobs
