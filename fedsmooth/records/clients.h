// clients.tsv: the label histograms of a partition's clients.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fedsmooth {

struct ClientRow {
  int64_t client = 0;
  std::vector<int64_t> labels;  // images of each class

  int64_t images() const;
};

/// Returns the table: columns client, images, label_0 ... label_(K-1). All rows must have the same
/// number of classes.
std::string format_clients(const std::vector<ClientRow>& rows);

/// Parse a table from text, in which `name` is its name in messages, or from a file. A last line
/// without its end is left out. Throw an Error that names the line if anything else is wrong, such
/// as labels that do not add up to `images`.
std::vector<ClientRow> parse_clients(std::string_view text, const std::string& name);
std::vector<ClientRow> read_clients(const std::filesystem::path& path);

}  // namespace fedsmooth
