// certificates.tsv as a file: rows that agree with the JSON beside them.
#pragma once

#include <vector>

#include "fedsmooth/records/certificates.h"
#include "fedsmooth/records/table_file.h"

namespace fedsmooth {

/// Reads a table. Every row is checked against its counts and against the identity in the JSON, if
/// there is one; a void table is an Error, and so is a published one.
std::vector<CertificateRow> read_certificates(const std::filesystem::path& table);

/// The same for who only shows rows: a published table (see published.h) is read too.
std::vector<CertificateRow> read_any_certificates(const std::filesystem::path& table);

/// An Error if there is a published table: for who would ask for its JSON first, which is missing.
/// Returns its argument.
const std::filesystem::path& refuse_published(const std::filesystem::path& table);

/// An Error that names the first row that is not of this identity, or claims more than its counts
/// support. `name` is the table's.
void check_identity(const std::vector<CertificateRow>& rows, const nlohmann::json& identity,
                    const std::string& name);

/// The kind of radius that an identity states. Tables that state none are one-sided.
RadiusKind radius_of(const nlohmann::json& identity, const std::string& name);

/// Writes a finished table and its JSON. A table that exists is an Error.
void write_certificates(const std::filesystem::path& table, const std::vector<CertificateRow>& rows,
                        const nlohmann::json& sidecar);

/// A table while it is being written.
class CertificateFile {
 public:
  /// As TableFile; a row that a kill cut off is removed. A table of given radii may be continued
  /// with more votes: its rows keep the cap that they had.
  CertificateFile(const std::filesystem::path& table, const nlohmann::json& sidecar, bool resume);

  const std::vector<CertificateRow>& rows() const { return rows_; }
  void append(const CertificateRow& row);
  /// Puts rows in the place of those of the same images, which must be there.
  void replace(const std::vector<CertificateRow>& rows);
  /// Makes the table void, for good. See format_void().
  void append_void(std::string_view line);

 private:
  std::vector<CertificateRow> rows_;
  TableFile file_;
};

}  // namespace fedsmooth
