// fedsmooth recertify CERTIFICATES.tsv: new radii from the stored counts, without the
// model.
#include "fedsmooth/jobs/recertify.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/against.h"
#include "cli/summary.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/jobs/load_run.h"

namespace fedsmooth::cli {
namespace {

// Other radii than those of the table's rows: into a table of their own.
void recertify_against(const jobs::RecertifyArguments& a, const jobs::AgainstOptions& options,
                       const CommandContext& common) {
  if (!a.radius.empty()) throw Error("--radius={}: not with --against and its like", a.radius);
  std::filesystem::path out = a.out;
  if (out.empty()) {
    const std::filesystem::path table = jobs::find_table(a.table);
    out = table.parent_path() / (table.stem().string() + "-against.tsv");
  }
  const AgainstResult result =
      jobs::certify_against({a.table, options, a.alpha.value_or(0), out.string()});
  nlohmann::json summary = against_json(result);
  summary["table"] = out.string();
  print_result(common, summary, fmt::format("{}{}\n", render_against(result), out.string()));
}

}  // namespace

void add_recertify(CLI::App& app, CommandContext& common) {
  auto a = std::make_shared<jobs::RecertifyArguments>();
  auto against = std::make_shared<jobs::AgainstOptions>();
  auto malicious = std::make_shared<std::string>();
  auto alpha = std::make_shared<double>(0);
  Command c(app, common, "recertify",
            "new radii at another alpha, or against given classes, from the stored counts",
            "  fedsmooth recertify runs/quickstart/smoothadv/certificates.tsv --alpha 0.01\n"
            "  fedsmooth recertify certificates.tsv --against benign   # how far from it\n"
            "  fedsmooth recertify certificates.tsv --superclasses superclasses.toml\n"
            "  fedsmooth recertify certificates.tsv --top 5");
  c.argument("certificates", a->table, "table of certificates");
  c.option("alpha", *alpha, "failure probability per image; the table's own if left out");
  c.option("radius", a->radius, "one-sided or multiclass; the table's own if left out");
  c.option(
      "malicious", *malicious,
      "number of malicious clients that radii hold against, for several groups; the table's own "
      "if left out");
  c.option("out", a->out, "table to write; beside the old one if left out");
  add_against(c, *against);
  c.on_run([a, against, malicious, alpha, &common] {
    if (*alpha != 0) a->alpha = *alpha;
    if (!malicious->empty()) a->malicious = jobs::parse_malicious(*malicious);
    if (against->asked()) {
      recertify_against(*a, *against, common);
      return 0;
    }
    print_summary(jobs::recertify(*a), common);
    return 0;
  });
}

}  // namespace fedsmooth::cli
