// Tables with another identity.
#pragma once

#include <nlohmann/json.hpp>

#include "fedsmooth/base/json.h"
#include "fedsmooth/records/certificate_file.h"

namespace fedsmooth {

/// Changes what the JSON beside a table says that it is about. `subject` follows.
template <typename Change>
void change_identity(const std::filesystem::path& table, const Change& change) {
  nlohmann::json sidecar = read_sidecar(table);
  CertificateIdentity identity = read_identity(table);
  change(identity);
  if (identity.subject) identity.subject = digest_subject(identity);
  sidecar["identity"] = identity.to_json();
  write_file(sidecar_path(table), dump_json_lines(sidecar));
}

/// Writes a table of other rows under the identity and JSON of `of`.
inline void write_like(const std::filesystem::path& of, const std::filesystem::path& table,
                       const std::vector<CertificateRow>& rows) {
  const CertificateIdentity identity = read_identity(of);
  const nlohmann::json sidecar = read_sidecar(of);
  write_certificates(table, rows, identity, sidecar);
}

}  // namespace fedsmooth
