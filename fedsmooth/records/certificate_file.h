// certificates.tsv as a file: rows that agree with the JSON beside them.
#pragma once

#include <vector>

#include "fedsmooth/records/certificate_identity.h"
#include "fedsmooth/records/certificates.h"
#include "fedsmooth/records/table_file.h"

namespace fedsmooth {

/// Reads a table. Every row is checked against its counts and against the identity in the JSON, if
/// there is one; a void table is an Error, and so is a published one.
std::vector<CertificateRow> read_certificates(const std::filesystem::path& table);

/// Reads a table to show it: as read_certificates(), and published tables too (see published.h).
std::vector<CertificateRow> read_any_certificates(const std::filesystem::path& table);

/// Throws if `table` is a published table, which has no JSON. Call this before reading the JSON,
/// for a better message. Returns its argument.
const std::filesystem::path& refuse_published(const std::filesystem::path& table);

/// The identity in the JSON beside a table.
CertificateIdentity read_identity(const std::filesystem::path& table);

/// An Error that names the first row that is not of this identity, or claims more than its counts
/// support. `name` is the table's.
void check_identity(const std::vector<CertificateRow>& rows, const CertificateIdentity& identity,
                    const std::string& name);

/// Writes a finished table and its JSON: `sidecar` with the identity. A table that exists is an
/// Error.
void write_certificates(const std::filesystem::path& table, const std::vector<CertificateRow>& rows,
                        const CertificateIdentity& identity, const nlohmann::json& sidecar);

/// A table while it is being written.
class CertificateFile {
 public:
  /// Starts or continues a table, as TableFile does; a row that a kill cut off is removed. A table
  /// of given radii may be continued with more votes: its rows keep the cap that they had. An
  /// unbound table, of an earlier version, is never continued.
  CertificateFile(const std::filesystem::path& table, const CertificateIdentity& identity,
                  const nlohmann::json& sidecar, bool resume);

  const std::vector<CertificateRow>& rows() const { return rows_; }
  void append(const CertificateRow& row);
  /// Puts rows in the place of those of the same images, which must be there.
  void replace(const std::vector<CertificateRow>& rows);
  /// Makes the table void, for good.
  void append_void(std::string_view reason);

 private:
  std::vector<CertificateRow> rows_;
  TableFile file_;
};

}  // namespace fedsmooth
