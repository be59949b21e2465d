// certificates.tsv as a file. Reading and writing check every row against its own counts and
// against the identity in the JSON beside the table.
#pragma once

#include <vector>

#include "fedsmooth/records/certificate_identity.h"
#include "fedsmooth/records/certificates.h"
#include "fedsmooth/records/table_file.h"

namespace fedsmooth {

/// Reads a table, and checks every row against its counts and against the identity in the JSON.
/// Throws an Error if a row fails, or if the table is void or published. The JSON may be missing
/// only for tables whose rows state no subject (earlier versions).
std::vector<CertificateRow> read_certificates(const std::filesystem::path& table);

/// Reads a table to show it: reads published tables (see published.h) as well, and all others by
/// read_certificates().
std::vector<CertificateRow> read_any_certificates(const std::filesystem::path& table);

/// Throws if `table` is a published table, which has no JSON. Call this before reading the JSON,
/// for a better message. Returns its argument.
const std::filesystem::path& refuse_published(const std::filesystem::path& table);

/// Returns the identity in the JSON beside a table. Throws an Error if there is none.
CertificateIdentity read_identity(const std::filesystem::path& table);

/// Throws an Error that names the first row that differs from this identity or claims more than its
/// counts support. `name` is the table's, for messages.
void check_identity(const std::vector<CertificateRow>& rows, const CertificateIdentity& identity,
                    const std::string& name);

/// Writes a finished table, and as its JSON `sidecar` with the identity. Throws an Error if the
/// table exists or another process writes it.
void write_certificates(const std::filesystem::path& table, const std::vector<CertificateRow>& rows,
                        const CertificateIdentity& identity, const nlohmann::json& sidecar);

/// A table while it is being written, with its rows in memory. It is locked against other processes
/// until it is destroyed.
class CertificateFile {
 public:
  /// Starts a table, or continues it if `resume` is set; a row that a kill cut off is removed. A
  /// table of given radii may be continued with a larger n: its rows keep their cap. Throws an
  /// Error if the table exists and `resume` is not set, if another process writes it, if its
  /// identity differs, or if it is unbound (of an earlier version) or published.
  CertificateFile(const std::filesystem::path& table, const CertificateIdentity& identity,
                  const nlohmann::json& sidecar, bool resume);

  const std::vector<CertificateRow>& rows() const { return rows_; }
  void append(const CertificateRow& row);
  /// Replaces the rows of the same images. A Bug if the table has no row for one of them.
  void replace(const std::vector<CertificateRow>& rows);
  /// Makes the table void for good: from then on it can be neither read nor continued.
  void append_void(std::string_view reason);

 private:
  std::vector<CertificateRow> rows_;
  TableFile file_;
};

}  // namespace fedsmooth
