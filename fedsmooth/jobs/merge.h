// The shards of one certification, joined.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace fedsmooth::jobs {

/// Writes the table of all rows to `out`, which must not exist. An Error unless the tables are the
/// shards of one certification, all of them, each complete.
void merge(const std::vector<std::string>& tables, const std::filesystem::path& out);

}  // namespace fedsmooth::jobs
