// The rows of a table of certificates, for tests that compare whole tables.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fedsmooth/records/certificate_file.h"

namespace fedsmooth {

/// Returns the table's rows as they stand in its file, but with a time of 0.
inline std::vector<std::string> rows_without_times(const std::filesystem::path& table) {
  std::vector<std::string> found;
  for (CertificateRow row : read_certificates(table)) {
    row.seconds = 0;
    found.push_back(format_row(row));
  }
  return found;
}

}  // namespace fedsmooth
