// Runs as arguments: RUN folders or .tsv files of certificates.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/options.h"
#include "fedsmooth/report/page/html.h"

namespace fedsmooth::cli {

/// The table of a run folder, or the file itself; an Error if there is none.
std::filesystem::path find_table(const std::filesystem::path& path);

/// What a run folder or a table holds, named after it if `name` is empty. A folder may lack
/// certificates if it has rounds; a certificates.tsv stands for its folder.
ReportRun load_run(const std::filesystem::path& path, const std::string& name = "");
/// Of each PATH, or NAME=PATH for another name.
std::vector<ReportRun> load_runs(const std::vector<std::string>& arguments);

/// Whether a folder is none of a run but of runs, such as a sweep leaves.
bool holds_runs(const std::filesystem::path& folder);
/// The run folders in it that have a row of certificates or rounds, by name.
std::vector<std::string> find_runs(const std::filesystem::path& folder);

/// What every command that writes a table ends with: the table of certified accuracy, where the
/// file is, and the JSON summary if asked for.
void print_summary(const std::filesystem::path& table, const Common& common);

}  // namespace fedsmooth::cli
