// fedsmooth recertify CERTIFICATES.tsv --alpha A: new radii from the stored counts, without the
// model.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/tables.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/report/certificate_file.h"

namespace fedsmooth::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string table, out, radius;  // radius: empty for the table's own
  double alpha = 0.0;
};

bool is_radius(const std::string& name) { return name == "one-sided" || name == "multiclass"; }

// The kind that was asked for, else the table's own; tables that do not say are one-sided.
std::string settle_radius(const std::string& asked, const nlohmann::json& identity,
                          const fs::path& table) {
  if (!asked.empty()) return asked;
  if (!identity.contains("radius") || !identity["radius"].is_string()) return "one-sided";
  const std::string own = identity["radius"].get<std::string>();
  if (!is_radius(own)) throw Error("{}: has radius \"{}\"; give --radius", table.string(), own);
  return own;
}

int run_recertify(const Arguments& a, const Common& common) {
  if (!a.radius.empty() && !is_radius(a.radius)) {
    throw Error("--radius={}: must be one-sided or multiclass", a.radius);
  }
  if (!(a.alpha > 0 && a.alpha < 1)) throw Error("--alpha: must be given, between 0 and 1");
  const fs::path table = find_table(a.table);
  std::vector<CertificateRow> rows = read_certificates(table);
  if (rows.empty()) throw Error("{}: has no rows yet", table.string());
  nlohmann::json sidecar = read_sidecar(table);

  const std::string kind = settle_radius(a.radius, sidecar["identity"], table);
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
