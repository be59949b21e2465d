// Many experiments in one file: a table [sweep] lists values for keys, and every combination is an
// experiment. The first key varies slowest. A list of tables [[sweep]] is one grid after another.
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

/// Reads TOML text, with or without a [sweep]. Its keys and values are checked like any others;
/// `file` stands in error messages.
Sweep parse_sweep(std::string_view text, const std::string& file, const std::string& name = "");
/// The sweep is named after the file.
Sweep read_sweep(const std::filesystem::path& path);

/// As for one experiment; a key that is swept keeps this value alone.
void set_key(Sweep& sweep, const std::string& key, const std::string& value);

/// All combinations of each grid. Names are the sweep's with the values, such as
/// e-sigma0.25-one-point.
std::vector<NamedExperiment> expand(const Sweep& sweep);

}  // namespace fedsmooth
