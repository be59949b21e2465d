// Joins the tables of one certification's shards into one table.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace fedsmooth::jobs {

/// Writes a table of all rows, by index, to `out`, which must not exist. Throws an Error unless the
/// tables are all shards of one certification and each is complete.
void merge(const std::vector<std::string>& tables, const std::filesystem::path& out);

}  // namespace fedsmooth::jobs
