// certificates.tsv while it is being written.
#pragma once

#include <vector>

#include "fedsmooth/report/certificates.h"
#include "fedsmooth/report/table_file.h"

namespace fedsmooth {

/// Writes a finished table and its JSON.
void write_certificates(const std::filesystem::path& table, const std::vector<CertificateRow>& rows,
                        const nlohmann::json& sidecar);

class CertificateFile {
 public:
  /// As TableFile; a row that a kill cut off is removed.
  CertificateFile(const std::filesystem::path& table, const nlohmann::json& sidecar, bool resume);

  const std::vector<CertificateRow>& rows() const { return rows_; }
  void append(const CertificateRow& row);

 private:
  std::vector<CertificateRow> rows_;
  TableFile file_;
};

}  // namespace fedsmooth
