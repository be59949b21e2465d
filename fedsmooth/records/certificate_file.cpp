#include "fedsmooth/records/certificate_file.h"

#include <algorithm>
#include <unordered_map>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/json.h"
#include "fedsmooth/records/certificate_columns.h"
#include "fedsmooth/records/published.h"

namespace fedsmooth {
namespace {

using nlohmann::json;

VoteRule rule_of(const json& identity) {
  if (identity.contains("radii")) return VoteRule::kRadii;
  return identity.contains("plan") ? VoteRule::kPlan : VoteRule::kFixed;
}

std::vector<double> find_numbers(const json& identity, const char* key, const std::string& name) {
  const json& list = identity[key];
  const auto is_number = [](const json& value) { return value.is_number(); };
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), is_number)) {
    throw Error("{}: \"{}\" is not a list of numbers", name, key);
  }
  return list.get<std::vector<double>>();
}

std::string format_table(const std::vector<CertificateRow>& rows) {
  std::string text = certificate_header();
  for (const CertificateRow& row : rows) text += format_row(row);
  return text;
}

// What an identity says of every row. What it leaves out is not compared.
struct Expected {
  std::optional<int64_t> n0, n;
  std::optional<double> alpha, sigma;
  std::optional<uint64_t> seed;
  std::optional<std::string> base;
  const NoiseLaw* noise = nullptr;
  bool shared = false, only_correct = false;
  RadiusKind radius = RadiusKind::kOneSided;
  VoteRule rule = VoteRule::kFixed;
  std::optional<double> beta;
  std::vector<double> radii;

  Expected(const json& identity, const std::string& name)
      : n0(find_count(identity, "n0", name)),
        n(find_count(identity, "n", name)),
        alpha(find_number(identity, "alpha", name)),
        sigma(find_number(identity, "sigma", name)),
        seed(find_seed(identity, "seed", name)),
        base(find_string(identity, "base", name)),
        shared(find_flag(identity, "noise_bank", name).value_or(false)),
        only_correct(find_flag(identity, "only_correct", name).value_or(false)),
        radius(radius_of(identity, name)),
        rule(rule_of(identity)),
        beta(find_number(identity, "beta", name)) {
    const std::string kind = find_string(identity, "noise", name).value_or("float");
    noise = find_law(kind);
    if (noise == nullptr) throw Error("{}: noise {:?} is not known to this version", name, kind);
    if (rule == VoteRule::kRadii) radii = find_numbers(identity, "radii", name);
    CertificateRow old;
    old.base = base.value_or("");
    take_noise_from_base(old);
    if (base) base = old.base;
  }

  // The first column in which a row differs; empty if none does.
  std::string difference(const CertificateRow& row) const {
    const int64_t votes = row.certificate.counts.n;
    if (n0 && row.n0 != *n0) return "n0";
    if (row.rule != rule) return "rule";
    if (n && !may_have(row, *n) && !(only_correct && votes == 0)) {
      return rule == VoteRule::kFixed ? "n" : "cap";
    }
    if (alpha && row.alpha != *alpha) return "alpha";
    if (sigma && row.sigma != *sigma) return "sigma";
    if (seed && row.seed != *seed) return "seed";
    if (base && row.base != *base) return "base";
    if (row.noise != noise) return "noise";
    if (row.shared != shared) return "shared";
    if (beta && row.beta != *beta) return "beta";
    if (row.radii != radii) return "radii";
    return {};
  }

  // Given radii may get a larger n later; rows that were decided before keep their cap.
  bool may_have(const CertificateRow& row, int64_t most) const {
    if (rule == VoteRule::kRadii) return row.cap <= most;
    return most == (rule == VoteRule::kFixed ? row.certificate.counts.n : row.cap);
  }
};

void refuse(std::string_view why, const std::string& name, size_t row) {
  if (!why.empty()) throw Error("{}:{}: {}", name, row + 2, why);
}

// Without an identity, the kind of the radii is not known.
void check_support(const std::vector<CertificateRow>& rows, const std::string& name) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (unsupported(rows[i], RadiusKind::kOneSided).empty()) continue;
    refuse(unsupported(rows[i], RadiusKind::kMulticlass), name, i);
  }
}

// Whether `now` is the identity `old`, of given radii, with a larger n.
bool has_more_votes(json old, const json& now) {
  if (rule_of(now) != VoteRule::kRadii || !old.contains("n") || !old["n"].is_number_integer()) {
    return false;
  }
  const bool more = old["n"] < now["n"];
  old["n"] = now["n"];
  return more && old == now;
}

// The size of kMaxRows rows that are 400 bytes long.
constexpr uintmax_t kMaxBytes = 400'000'000;

std::string read_table(const std::filesystem::path& table) {
  std::error_code unknown;  // read_file() says why
  const uintmax_t bytes = std::filesystem::file_size(table, unknown);
  if (!unknown && bytes > kMaxBytes) {
    throw Error("{}: has {} bytes, too many for a table of certificates", table.string(), bytes);
  }
  return read_file(table);
}

std::vector<CertificateRow> check_certificates(std::string_view text,
                                               const std::filesystem::path& table) {
  std::vector<CertificateRow> rows = parse_certificates(text, table.string());
  if (table.extension() == ".tsv" && std::filesystem::exists(sidecar_path(table))) {
    check_identity(rows, read_sidecar(table)["identity"], table.string());
  } else {
    check_support(rows, table.string());
  }
  return rows;
}

}  // namespace

RadiusKind radius_of(const json& identity, const std::string& name) {
  const std::string kind = find_string(identity, "radius", name).value_or("one-sided");
  for (const RadiusKind radius : {RadiusKind::kOneSided, RadiusKind::kMulticlass}) {
    if (kind == radius_name(radius)) return radius;
  }
  throw Error("{}: \"radius\" is {:?}, which is not one-sided or multiclass", name,
              kind.substr(0, 40));
}

void check_identity(const std::vector<CertificateRow>& rows, const json& identity,
                    const std::string& name) {
  const Expected expected(identity, name);
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string column = expected.difference(rows[i]);
    if (!column.empty()) {
      refuse(column + " is not that of the table's identity, in the JSON beside it", name, i);
    }
    refuse(unsupported(rows[i], expected.radius), name, i);
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
                        const json& sidecar) {
  sidecar_path(table);  // refuses another ending
  const FileLock lock(table);
  if (std::filesystem::exists(table)) {
    throw Error("{}: exists; choose another --out", table.string());
  }
  write_new_table(table, format_table(rows), sidecar);
}

CertificateFile::CertificateFile(const std::filesystem::path& table, const json& sidecar,
                                 bool resume)
    : file_(
          refuse_published(table), certificate_header(), sidecar, resume,
          [&](const std::string& text) {
            rows_ = parse_certificates(text, table.string());
            check_identity(rows_, sidecar["identity"], table.string());
            return format_table(rows_);
          },
          [&](const json& old) { return has_more_votes(old, sidecar["identity"]); }) {}

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

void CertificateFile::append_void(std::string_view line) { file_.append(line); }

}  // namespace fedsmooth
