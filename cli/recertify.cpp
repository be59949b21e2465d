// fedsmooth recertify CERTIFICATES.tsv --alpha A: new radii from the stored counts, without the
// model.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/tables.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/records/certificate_file.h"

namespace fedsmooth::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string table, out, radius;  // radius: empty for the table's own
  double alpha = 0.0;
};

bool is_radius(const std::string& name) { return name == "one-sided" || name == "multiclass"; }

int run_recertify(const Arguments& a, const Common& common) {
  if (!a.radius.empty() && !is_radius(a.radius)) {
    throw Error("--radius={}: must be one-sided or multiclass", a.radius);
  }
  if (!(a.alpha > 0 && a.alpha < 1)) throw Error("--alpha: must be given, between 0 and 1");
  const fs::path table = find_table(a.table);
  std::vector<CertificateRow> rows = read_certificates(table);
  if (rows.empty()) throw Error("{}: has no rows yet", table.string());
  nlohmann::json sidecar = read_sidecar(table);

  const std::string kind =
      a.radius.empty() ? radius_name(radius_of(sidecar["identity"], sidecar_path(table).string()))
                       : a.radius;
  const RadiusKind radius = kind == "multiclass" ? RadiusKind::kMulticlass : RadiusKind::kOneSided;
  for (CertificateRow& row : rows) {
    const int64_t n = row.certificate.counts.n;
    if (n > 0) check_certify_options({row.n0, n, a.alpha, radius}, row.sigma);
    row.certificate = certificate_from_counts(row.certificate.counts, row.sigma, a.alpha, radius);
    row.alpha = a.alpha;
  }
  sidecar["identity"]["alpha"] = a.alpha;
  sidecar["identity"]["radius"] = kind;
  sidecar["recertified_from"] = table.string();

  fs::path out = a.out;
  if (out.empty()) {
    out = table.parent_path() /
          fmt::format("{}-alpha{}-{}.tsv", table.stem().string(), a.alpha, kind);
  }
  if (fs::exists(out)) throw Error("{}: exists; choose another --out", out.string());
  write_certificates(out, rows, sidecar);
  print_summary(out, common);
  return 0;
}

}  // namespace

void add_recertify(CLI::App& app, Common& common) {
  auto a = std::make_shared<Arguments>();
  Command c(app, common, "recertify", "new radii at another alpha, from the stored counts",
            "  fedsmooth recertify runs/quickstart/smoothadv/certificates.tsv --alpha 0.01");
  c.argument("certificates", a->table, "table of certificates");
  c.option("alpha", a->alpha, "failure probability per image; required");
  c.option("radius", a->radius, "one-sided or multiclass; the table's own if left out");
  c.option("out", a->out, "table to write; beside the old one if left out");
  c.on_run([a, &common] { return run_recertify(*a, common); });
}

}  // namespace fedsmooth::cli
