// A table that grows row by row, and the JSON beside it. The JSON's "identity" says what the rows
// are about: model, data, noise, draws, seed, images. Rows are added only to a file of the same
// identity, so that no file ever mixes two measurements.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace fedsmooth {

/// certificates.tsv -> certificates.json
std::filesystem::path sidecar_path(const std::filesystem::path& table);

/// The JSON beside a table; an Error if it is missing or no JSON object with an "identity".
nlohmann::json read_sidecar(const std::filesystem::path& table);

/// The first member in which two identities differ, with both values.
std::string identity_difference(const nlohmann::json& here, const nlohmann::json& there);

/// Version, commit, LibTorch, date: who wrote a file.
nlohmann::json build_provenance();

class TableFile {
 public:
  /// Starts `table` with `header`, or goes on with it if `resume` is set; what of its old text is
  /// to stay, `keep` says. A table that exists is an Error otherwise, and so is one of another
  /// identity.
  TableFile(std::filesystem::path table, std::string_view header, const nlohmann::json& sidecar,
            bool resume, const std::function<std::string(const std::string&)>& keep);
  ~TableFile();
  TableFile(const TableFile&) = delete;
  TableFile& operator=(const TableFile&) = delete;

  /// Hands the lines to the operating system whole, so that they outlive this process.
  void append(std::string_view lines);

 private:
  std::filesystem::path table_;
  int descriptor_ = -1;
};

}  // namespace fedsmooth
