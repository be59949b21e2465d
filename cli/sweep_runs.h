// The experiments of a sweep, trained and certified from wherever an earlier sweep stopped.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/options.h"
#include "fedsmooth/config/sweep.h"

namespace fedsmooth::cli {

/// What became of the experiments.
struct SweepOutcome {
  std::vector<size_t> done;  // their places, in order
  size_t failed = 0;
  std::string interrupted;  // where, if so

  void add(const SweepOutcome& other);
};

/// Run folders go to `out`, called after the experiments. Experiments that differ in nothing but
/// how they are certified are trained once. One that fails is told and does not stop the others.
///
/// A GPU is given several trainings at the same time if they are too different to share a wave: the
/// server's part of a round, a short kernel and a certification then leave no gaps.
SweepOutcome run_experiments(const std::vector<NamedExperiment>& all,
                             const std::filesystem::path& out, const Common& common);

}  // namespace fedsmooth::cli
