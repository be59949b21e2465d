// Loads runs for reports, from run folders or .tsv files of certificates.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "fedsmooth/report/report_run.h"

namespace fedsmooth::jobs {

/// Returns the table of a run folder, or the file itself. Throws an Error if there is none.
std::filesystem::path find_table(const std::filesystem::path& path);

/// The norm in which radii are shown, and facts that published tables do not state (0: unknown).
struct TableOptions {
  std::string norm = "l2";  // or linf, l1
  int64_t values = 0;       // numbers in an image
  double sigma = 0.0;
  double alpha = 0.0;
  int64_t n = 0;
  std::string data;  // folder of the data set, for test images; empty: the run's own data.root
};

/// Throws an Error for values that no table can have.
void check_table_options(const TableOptions& options);

/// Loads a run folder or a table. The result is called `name` or, if that is empty, after the path.
/// A folder may lack certificates if it has rounds; a certificates.tsv stands for its folder.
/// Published tables of six columns are accepted, with the facts in `options`; radii in l_inf
/// require options.values or a table that states it. In norms other than l2 attacks are left out. A
/// path that does not exist is read from the runs.tar.gz of the folder above it.
RunRecord load_run(const std::filesystem::path& path, const std::string& name = "",
                   const TableOptions& options = {});
/// Loads the run at each PATH, or NAME=PATH for another name.
std::vector<RunRecord> load_runs(const std::vector<std::string>& arguments,
                                 const TableOptions& options = {});

/// Returns whether a folder contains runs, as that of a sweep does, or their runs.tar.gz, and is
/// not a run itself.
bool holds_runs(const std::filesystem::path& folder);
/// Returns the run folders in `folder` that have a row of certificates or rounds, sorted by name.
/// Throws an Error if there is none.
std::vector<std::string> find_runs(const std::filesystem::path& folder);

}  // namespace fedsmooth::jobs
