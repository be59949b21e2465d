// A table that grows row by row, and the JSON beside it. The JSON's "identity" says what the rows
// are about: model, data, noise, draws, seed, images. Rows are added only to a file of the same
// identity, so that no file ever mixes two measurements.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "fedsmooth/base/file.h"

namespace fedsmooth {

/// certificates.tsv -> certificates.json
std::filesystem::path sidecar_path(const std::filesystem::path& table);

/// The JSON beside a table; an Error if it is missing or not a JSON object with an "identity".
nlohmann::json read_sidecar(const std::filesystem::path& table);
nlohmann::json parse_sidecar(std::string_view text, const std::filesystem::path& table);

/// Removes what a kill left of writing the table or its JSON, if the lock on the table is held.
void remove_unfinished_table(const std::filesystem::path& table, const FileLock& lock);

/// Writes a table that is not there yet, and its JSON. The caller holds the table's FileLock. A
/// JSON that is there is an Error unless it is one of ours, which a kill left without its table.
void write_new_table(const std::filesystem::path& table, std::string_view text,
                     const nlohmann::json& sidecar);

/// Binds the rows of a finished table to its JSON, by their SHA-256. A table that is continued
/// loses its seal until it is finished again.
void seal_table(const std::filesystem::path& table);
/// Throws an Error if the JSON beside a table has the seal of other rows than `text`.
void check_seal(const std::filesystem::path& table, std::string_view text);

/// The first member in which two identities differ, with both values; empty if there is none.
std::string identity_difference(const nlohmann::json& here, const nlohmann::json& there);
/// An Error if a table that exists differs in its identity from the one that is to continue it.
void refuse_difference(const std::string& difference, const std::filesystem::path& table);

/// Version, commit, date: who wrote a file.
nlohmann::json build_provenance();

/// A table that one process at a time adds rows to.
class TableFile {
 public:
  using Keep = std::function<std::string(const std::string& text)>;
  using CheckContinues = std::function<void(const nlohmann::json& old)>;

  /// Starts `table` with `header`, or continues it if `resume` is set: `keep` returns the part of
  /// the existing text to retain. A table that exists is an Error otherwise, and so is one that
  /// another process is writing, or one whose identity may not be continued: `check_continues`
  /// throws for such a one; if it is empty, the identities must be equal. The table then has the
  /// identity of `sidecar`.
  TableFile(std::filesystem::path table, std::string_view header, const nlohmann::json& sidecar,
            bool resume, const Keep& keep, const CheckContinues& check_continues = {});
  ~TableFile();
  TableFile(const TableFile&) = delete;
  TableFile& operator=(const TableFile&) = delete;

  /// Hands the lines to the operating system whole, so that they outlive this process.
  void append(std::string_view lines);
  /// Replaces the whole text, header included.
  void rewrite(std::string_view text);

 private:
  void open();

  std::filesystem::path table_;
  FileLock lock_;
  int descriptor_ = -1;
};

}  // namespace fedsmooth
