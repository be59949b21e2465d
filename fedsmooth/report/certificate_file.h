// certificates.tsv while it is being written, and the JSON beside it. The JSON's "identity" says
// what the rows are about: model, data, noise, draws, seed, images. Rows are added only to a file
// of the same identity, so that no file ever mixes two certifications.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "fedsmooth/report/certificates.h"

namespace fedsmooth {

/// certificates.tsv -> certificates.json
std::filesystem::path sidecar_path(const std::filesystem::path& table);

/// The JSON beside a table; an Error if it is missing or no JSON object with an "identity".
nlohmann::json read_sidecar(const std::filesystem::path& table);

/// The first member in which two identities differ, with both values.
std::string identity_difference(const nlohmann::json& here, const nlohmann::json& there);

/// Version, commit, LibTorch, date: who wrote a file.
nlohmann::json build_provenance();

/// Writes a finished table and its JSON.
void write_certificates(const std::filesystem::path& table, const std::vector<CertificateRow>& rows,
                        const nlohmann::json& sidecar);

class CertificateFile {
 public:
  /// Starts `table`, or goes on with it if `resume` is set: a row that a kill cut off is removed. A
  /// table that exists is an Error otherwise, and so is one of another identity.
  CertificateFile(std::filesystem::path table, const nlohmann::json& sidecar, bool resume);
  ~CertificateFile();
  CertificateFile(const CertificateFile&) = delete;
  CertificateFile& operator=(const CertificateFile&) = delete;

  const std::vector<CertificateRow>& rows() const { return rows_; }

  /// Hands the row to the operating system whole, so that it outlives this process.
  void append(const CertificateRow& row);

 private:
  std::filesystem::path table_;
  std::vector<CertificateRow> rows_;
  int descriptor_ = -1;
};

}  // namespace fedsmooth
