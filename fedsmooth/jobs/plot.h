// Draws a figure about runs: certified accuracy, the training history or the attack in training.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fedsmooth/jobs/load_run.h"

namespace fedsmooth::jobs {

struct PlotArguments {
  std::vector<std::string> runs;   // run folders or tables; NAME=PATH for another name
  std::filesystem::path out;       // .svg, .pdf or .png
  std::string what = "certified";  // or training, attack
  TableOptions tables;
};

/// Draws the figure by gnuplot and returns the number of runs in it. Throws an Error if `what` is
/// unknown, or is `certified` and a run has no certificates.
int64_t plot(const PlotArguments& arguments);

}  // namespace fedsmooth::jobs
