#include "fedsmooth/report/certificate_file.h"

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"

namespace fedsmooth {
namespace {

std::string format_table(const std::vector<CertificateRow>& rows) {
  std::string text = certificate_header();
  for (const CertificateRow& row : rows) text += format_row(row);
  return text;
}

}  // namespace

void write_certificates(const std::filesystem::path& table, const std::vector<CertificateRow>& rows,
                        const nlohmann::json& sidecar) {
  write_file(sidecar_path(table), sidecar.dump(2) + "\n");
  try {
    write_file(table, format_table(rows));
  } catch (const Error&) {
    std::filesystem::remove(sidecar_path(table));
    throw;
  }
}

CertificateFile::CertificateFile(const std::filesystem::path& table, const nlohmann::json& sidecar,
                                 bool resume)
    : file_(table, certificate_header(), sidecar, resume, [&](const std::string& text) {
        rows_ = parse_certificates(text, table.string());
        return format_table(rows_);
      }) {}

void CertificateFile::append(const CertificateRow& row) {
  file_.append(format_row(row));
  rows_.push_back(row);
}

}  // namespace fedsmooth
