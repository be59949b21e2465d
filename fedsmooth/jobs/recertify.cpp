#include "fedsmooth/jobs/recertify.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fedsmooth/base/error.h"
#include "fedsmooth/jobs/load_run.h"
#include "fedsmooth/records/certificate_file.h"
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

}  // namespace

fs::path recertify(const RecertifyArguments& a) {
  if (!a.radius.empty() && !is_radius(a.radius)) {
    throw Error("--radius={}: must be one-sided or multiclass", a.radius);
  }
  if (!is_level(a.alpha)) throw Error("--alpha={}: {}", a.alpha, kLevels);
  const fs::path table = find_table(a.table);
  std::vector<CertificateRow> rows = read_certificates(table);
  if (rows.empty()) throw Error("{}: has no rows yet", table.string());
  CertificateIdentity identity = read_identity(table);
  const RadiusKind kept = identity.radius.value_or(RadiusKind::kOneSided);
  const std::string kind = a.radius.empty() ? radius_name(kept) : a.radius;
  const RadiusKind radius = kind == "multiclass" ? RadiusKind::kMulticlass : RadiusKind::kOneSided;
  for (CertificateRow& row : rows) {
    if (row.rule == VoteRule::kRadii) {
      // A bound for a fixed number of votes does not hold for votes that were stopped early.
      if (radius != RadiusKind::kOneSided) {
        throw Error(
            "--radius=multiclass: {} has votes that were stopped early (--radii); its "
            "radii are one-sided",
            table.string());
      }
      recertify_radii(row, a.alpha);
      continue;
    }
    const int64_t n = row.certificate.counts.n;
    if (n > 0) check_certify_options({row.n0, n, a.alpha, radius}, row.sigma, row.law());
    row.certificate =
        certificate_from_counts(row.certificate.counts, row.sigma, a.alpha, radius, row.law());
    row.alpha = a.alpha;
  }
  identity.alpha = a.alpha;
  identity.radius = radius;
  nlohmann::json sidecar = read_sidecar(table);
  sidecar["recertified_from"] = table.string();

  fs::path out = a.out;
  if (out.empty()) {
    out = table.parent_path() /
          fmt::format("{}-alpha{}-{}.tsv", table.stem().string(), a.alpha, kind);
  }
  if (fs::exists(out)) throw Error("{}: exists; choose another --out", out.string());
  write_certificates(out, rows, identity, sidecar);
  return out;
}

}  // namespace fedsmooth::jobs
