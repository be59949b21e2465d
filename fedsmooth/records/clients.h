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

/// Columns: client, images, label_0 ... label_(K-1). All rows have the same number of classes.
std::string format_clients(const std::vector<ClientRow>& rows);

/// See tsv.h.
std::vector<ClientRow> parse_clients(std::string_view text, const std::string& name);
std::vector<ClientRow> read_clients(const std::filesystem::path& path);

}  // namespace fedsmooth
