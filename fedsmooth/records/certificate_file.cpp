#include "fedsmooth/records/certificate_file.h"

#include <algorithm>
#include <unordered_map>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/records/certificate_columns.h"
#include "fedsmooth/records/published.h"
#include "fedsmooth/records/run.h"

namespace fedsmooth {
namespace {

using nlohmann::json;

std::string format_table(const std::vector<CertificateRow>& rows) {
  std::string text = certificate_header();
  for (const CertificateRow& row : rows) text += format_row(row);
  return text;
}

void refuse(std::string_view why, const std::string& name, size_t row) {
  if (!why.empty()) throw Error("{}:{}: {}", name, row + 2, why);
}

// Without an identity the kind of the radii is unknown, so that support by either kind suffices.
void check_support(const std::vector<CertificateRow>& rows, const std::string& name) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (unsupported(rows[i], RadiusKind::kOneSided).empty()) continue;
    refuse(unsupported(rows[i], RadiusKind::kMulticlass), name, i);
  }
}

// Throws unless a table of identity `old` may be continued as one of identity `now`.
void check_continues(const CertificateIdentity& old, const CertificateIdentity& now,
                     const std::filesystem::path& table) {
  if (!old.subject) {
    throw Error(
        "{}: was made by an earlier version, which did not bind rows to model and data; it can be "
        "read but not continued; certify into another table",
        table.string());
  }
  CertificateIdentity raised = old;
  const bool may_raise = now.rule() == VoteRule::kRadii && old.n && now.n && *old.n < *now.n;
  if (may_raise) raised.n = now.n;
  if (!old.classes) raised.classes = now.classes;  // earlier versions did not state it
  refuse_difference(now.difference(raised), table);
}

json with_identity(json sidecar, const CertificateIdentity& identity) {
  sidecar["identity"] = identity.to_json();
  return sidecar;
}

// kMaxRows rows of 600 bytes.
constexpr uintmax_t kMaxBytes = 600'000'000;

std::string read_table(const std::filesystem::path& table) {
  std::error_code unknown;  // read_file() says why
  const uintmax_t bytes = std::filesystem::file_size(table, unknown);
  if (!unknown && bytes > kMaxBytes) {
    throw Error("{}: has {} bytes, too many for a table of certificates", table.string(), bytes);
  }
  return read_file(table);
}

// Throws an Error if a run folder's certificates.tsv is of another model than the run trained.
void check_is_of_folder(const CertificateIdentity& identity, const std::filesystem::path& table) {
  if (table.filename() != "certificates.tsv" || !identity.model_sha256) return;
  const std::filesystem::path folder = std::filesystem::absolute(table).parent_path();
  if (trained_sha256(folder).value_or(*identity.model_sha256) != *identity.model_sha256) {
    throw Error("{}: is of another model than the one that this run trained; certify the run again",
                table.string());
  }
}

std::vector<CertificateRow> check_certificates(std::string_view text,
                                               const std::filesystem::path& table) {
  std::vector<CertificateRow> rows = parse_certificates(text, table.string());
  if (table.extension() == ".tsv" && std::filesystem::exists(sidecar_path(table))) {
    const CertificateIdentity identity = read_identity(table);
    check_is_of_folder(identity, table);
    check_identity(rows, identity, table.string());
  } else if (!rows.empty() && !rows.front().subject.empty()) {
    throw Error("{}: {}, which says what its rows are about, is missing", table.string(),
                sidecar_path(table).filename().string());
  } else {
    check_support(rows, table.string());
  }
  return rows;
}

}  // namespace

CertificateIdentity read_identity(const std::filesystem::path& table) {
  return CertificateIdentity::from_json(read_sidecar(table)["identity"],
                                        sidecar_path(table).string());
}

void check_identity(const std::vector<CertificateRow>& rows, const CertificateIdentity& identity,
                    const std::string& name) {
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string_view column = column_difference(rows[i], identity);
    if (!column.empty()) {
      refuse(std::string(column) + " is not that of the table's identity, in the JSON beside it",
             name, i);
    }
    refuse(unsupported(rows[i], identity.radius.value_or(RadiusKind::kOneSided)), name, i);
  }
}

std::vector<CertificateRow> read_certificates(const std::filesystem::path& table) {
  return check_certificates(read_table(table), table);
}

std::vector<CertificateRow> read_any_certificates(const std::filesystem::path& table) {
  const std::string text = read_table(table);
  return is_published(text) ? parse_published(text, table.string())
                            : check_certificates(text, table);
}

const std::filesystem::path& refuse_published(const std::filesystem::path& table) {
  if (std::filesystem::exists(table)) {
    const std::string text = read_table(table);
    if (is_published(text)) parse_certificates(text, table.string());
  }
  return table;
}

void write_certificates(const std::filesystem::path& table, const std::vector<CertificateRow>& rows,
                        const CertificateIdentity& identity, const json& sidecar) {
  sidecar_path(table);  // refuses another ending
  const FileLock lock(table);
  remove_unfinished_table(table, lock);
  if (std::filesystem::exists(table)) {
    throw Error("{}: exists; choose another --out", table.string());
  }
  write_new_table(table, format_table(rows), with_identity(sidecar, identity));
}

CertificateFile::CertificateFile(const std::filesystem::path& table,
                                 const CertificateIdentity& identity, const json& sidecar,
                                 bool resume)
    : file_(
          refuse_published(table), certificate_header(), with_identity(sidecar, identity), resume,
          [&](const std::string& text) {
            rows_ = parse_certificates(text, table.string());
            check_identity(rows_, identity, table.string());
            return format_table(rows_);
          },
          [&](const json& old) {
            check_continues(CertificateIdentity::from_json(old, sidecar_path(table).string()),
                            identity, table);
          }) {}

void CertificateFile::append(const CertificateRow& row) {
  file_.append(format_row(row));
  rows_.push_back(row);
}

void CertificateFile::replace(const std::vector<CertificateRow>& rows) {
  std::unordered_map<int64_t, const CertificateRow*> of_image;
  for (const CertificateRow& row : rows) of_image[row.index] = &row;
  size_t replaced = 0;
  for (CertificateRow& row : rows_) {
    const auto found = of_image.find(row.index);
    if (found == of_image.end()) continue;
    row = *found->second;
    ++replaced;
  }
  check(replaced == rows.size(), "CertificateFile: {} of {} rows are there", replaced, rows.size());
  file_.rewrite(format_table(rows_));
}

void CertificateFile::append_void(std::string_view reason) { file_.append(format_void(reason)); }

}  // namespace fedsmooth
