// Many experiments in one file: a table [sweep] lists values for keys, and every combination is an
// experiment. The first key varies slowest. Several tables [[sweep]] are grids of their own, whose
// experiments follow one another.
//
//     [sweep]
//     "smoothing.sigma" = [0.12, 0.25, 0.5]
//     "attack.estimator" = ["stochastic", "one-point"]
#pragma once

#include "fedsmooth/config/experiment.h"

namespace fedsmooth {

struct SweepAxis {
  std::string key;
  std::vector<std::string> values;  // as TOML
};

using SweepGrid = std::vector<SweepAxis>;

struct Sweep {
  std::string name;
  Experiment base;
  std::vector<SweepGrid> grids;  // none: one experiment
};

struct NamedExperiment {
  std::string name;
  Experiment experiment;
};

/// Reads TOML text, with or without a [sweep]. Keys and values of the grids are checked like those
/// of an experiment. Throws an Error with `file` and the line, also for more than 10,000
/// experiments.
Sweep parse_sweep(std::string_view text, const std::string& file, const std::string& name = "");
/// Reads a file by parse_sweep(). The sweep is named after the file.
Sweep read_sweep(const std::filesystem::path& path);

/// Sets a key of the base experiment, as given on the command line. If the key is swept, this value
/// replaces its list.
void set_key(Sweep& sweep, const std::string& key, const std::string& value);

/// Returns all combinations of each grid. Names are the sweep's name and the values, such as
/// e-sigma0.25-one-point.
std::vector<NamedExperiment> expand(const Sweep& sweep);

}  // namespace fedsmooth
