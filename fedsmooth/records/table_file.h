// A table that grows row by row, and the JSON beside it. The JSON's "identity" says what the rows
// are about: model, data, noise, draws, seed, images. Rows are added only to a table of the same
// identity, so that no table mixes two measurements.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "fedsmooth/base/file.h"

namespace fedsmooth {

/// Returns the path of the JSON beside a table: certificates.json for certificates.tsv. Throws an
/// Error if the table does not end in .tsv.
std::filesystem::path sidecar_path(const std::filesystem::path& table);

/// Return the JSON beside `table`, read from its file or parsed from its text. Throw an Error if it
/// is missing or not a JSON object with an "identity".
nlohmann::json read_sidecar(const std::filesystem::path& table);
nlohmann::json parse_sidecar(std::string_view text, const std::filesystem::path& table);

/// Removes the temporary files that a killed writer of the table or of its JSON left. Does nothing
/// unless the lock on the table is held.
void remove_unfinished_table(const std::filesystem::path& table, const FileLock& lock);

/// Writes a table that does not exist yet, and its JSON. The caller must hold the table's FileLock.
/// Throws an Error if the JSON exists, unless it has an identity that states a model: such a JSON
/// was left by a kill before its table was written, and is replaced.
void write_new_table(const std::filesystem::path& table, std::string_view text,
                     const nlohmann::json& sidecar);

/// Seals a finished table: writes the SHA-256 of its text into its JSON. A table that is continued
/// loses its seal until it is finished again.
void seal_table(const std::filesystem::path& table);
/// Throws an Error if the JSON beside a table has the seal of another text than `text`.
void check_seal(const std::filesystem::path& table, std::string_view text);

/// Returns the first member in which two identities differ, with both values; empty if there is
/// none.
std::string identity_difference(const nlohmann::json& here, const nlohmann::json& there);
/// Throws an Error that `table` is of another identity, unless `difference` is empty.
void refuse_difference(const std::string& difference, const std::filesystem::path& table);

/// Returns version, commit and date, by which files state the program that wrote them.
nlohmann::json build_provenance();

/// A table to which one process at a time adds rows. It holds the table's FileLock until it is
/// destroyed; the rows are then flushed to disk.
class TableFile {
 public:
  using Keep = std::function<std::string(const std::string& text)>;
  using CheckContinues = std::function<void(const nlohmann::json& identity)>;

  /// Starts `table` with `header`, or continues it if `resume` is set: `keep` returns the part of
  /// the existing text to retain. Throws an Error if another process writes the table, if
  /// `check_continues` refuses the identity of an existing table, or if the table could be
  /// continued but `resume` is not set. Afterwards the table has the identity of `sidecar`.
  TableFile(std::filesystem::path table, std::string_view header, const nlohmann::json& sidecar,
            bool resume, const Keep& keep, const CheckContinues& check_continues);
  ~TableFile();
  TableFile(const TableFile&) = delete;
  TableFile& operator=(const TableFile&) = delete;

  /// Appends lines in one write, so that they survive a kill of this process (not of the machine).
  void append(std::string_view lines);
  /// Replaces the whole text, header included.
  void rewrite(std::string_view text);

 private:
  void continue_table(const nlohmann::json& sidecar, bool resume, const Keep& keep,
                      const CheckContinues& check_continues);
  void open();

  std::filesystem::path table_;
  FileLock lock_;
  int descriptor_ = -1;
};

}  // namespace fedsmooth
