#include "fedsmooth/jobs/recertify.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fedsmooth/base/error.h"
#include "fedsmooth/jobs/load_run.h"
#include "fedsmooth/records/certificate_file.h"
#include "fedsmooth/records/field_reader.h"
#include "fedsmooth/records/group_columns.h"
#include "fedsmooth/smoothing/sequential.h"
#include "fedsmooth/smoothing/statistics.h"

namespace fedsmooth::jobs {
namespace {

namespace fs = std::filesystem;

bool is_radius(const std::string& name) { return name == "one-sided" || name == "multiclass"; }

void recertify_radii(CertificateRow& row, double alpha) {
  Certificate& c = row.certificate;
  const NoiseLaw& law = row.law();
  c = certificate_from_latches(c.counts,
                               latches_at(c.counts, c.latches, row.radii, row.sigma, alpha, law),
                               row.radii, row.sigma, law);
  row.alpha = alpha;
}

// Returns the alpha of all claims about an image together.
double alpha_of_table(const std::vector<CertificateRow>& rows, const CertificateIdentity& i) {
  const CertificateRow& row = rows.front();
  const bool shared = row.rule == VoteRule::kFixed && i.malicious;
  return row.alpha * (shared ? static_cast<double>(*i.malicious) + 1 : 1.0);
}

// Returns the identity of the new table; its alpha is the level of each single claim.
CertificateIdentity new_identity(CertificateIdentity identity, const RecertifyArguments& a,
                                 double alpha, RadiusKind radius, const fs::path& table) {
  identity.radius = radius;
  identity.alpha = alpha;
  CertifyOptions o{.alpha = alpha, .radius = radius, .plan = identity.plan.value_or(0)};
  o.malicious = a.malicious.value_or(identity.malicious.value_or(0));
  if (a.malicious && !identity.groups) {
    throw Error("--malicious={}: {} is about one network", *a.malicious, table.string());
  }
  if (!identity.groups) return identity;
  check_malicious(o, *identity.groups);
  identity.malicious = o.malicious;
  if (!identity.radii) identity.alpha = o.level();
  return identity;
}

}  // namespace

int64_t parse_malicious(const std::string& text) {
  const auto number = parse_number<int64_t>(text);
  if (number && *number >= 0) return *number;
  throw Error("--malicious={}: must be a whole number from 0 on", text);
}

fs::path recertify(const RecertifyArguments& a) {
  if (!a.radius.empty() && !is_radius(a.radius)) {
    throw Error("--radius={}: must be one-sided or multiclass", a.radius);
  }
  if (!a.alpha && a.radius.empty() && !a.malicious) {
    throw Error("{}: nothing to change; give --alpha, --radius or --malicious", a.table);
  }
  if (a.alpha && !is_level(*a.alpha)) throw Error("--alpha={}: {}", *a.alpha, kLevels);
  const fs::path table = find_table(a.table);
  std::vector<CertificateRow> rows = read_certificates(table);
  if (rows.empty()) throw Error("{}: has no rows yet", table.string());
  CertificateIdentity identity = read_identity(table);
  const double all = a.alpha.value_or(alpha_of_table(rows, identity));  // claims about an image
  const RadiusKind kept = identity.radius.value_or(RadiusKind::kOneSided);
  const std::string kind = a.radius.empty() ? radius_name(kept) : a.radius;
  const RadiusKind radius = kind == "multiclass" ? RadiusKind::kMulticlass : RadiusKind::kOneSided;
  identity = new_identity(identity, a, all, radius, table);
  const double alpha = *identity.alpha;  // level of each claim
  for (CertificateRow& row : rows) {
    if (identity.malicious) row = against(row, *identity.malicious);
    if (row.rule == VoteRule::kRadii) {
      // A bound for a fixed number of votes does not hold for votes that were stopped early.
      if (radius != RadiusKind::kOneSided) {
        throw Error(
            "--radius=multiclass: {} has votes that were stopped early (--radii); its "
            "radii are one-sided",
            table.string());
      }
      recertify_radii(row, alpha);
      continue;
    }
    const int64_t n = row.certificate.counts.n;
    if (n > 0) check_certify_options({row.n0, n, alpha, radius}, row.sigma, row.law());
    row.certificate =
        certificate_from_counts(row.certificate.counts, row.sigma, alpha, radius, row.law());
    row.alpha = alpha;
  }
  nlohmann::json sidecar = read_sidecar(table);
  sidecar["recertified_from"] = table.string();

  fs::path out = a.out;
  if (out.empty()) {
    const std::string more = a.malicious ? fmt::format("-malicious{}", *a.malicious) : "";
    out = table.parent_path() /
          fmt::format("{}-alpha{}-{}{}.tsv", table.stem().string(), all, kind, more);
  }
  if (fs::exists(out)) throw Error("{}: exists; choose another --out", out.string());
  write_certificates(out, rows, identity, sidecar);
  return out;
}

}  // namespace fedsmooth::jobs
