// fedsmooth compare A B [--out F.html]: two tables on the images that both have.
#include "fedsmooth/jobs/compare.h"

#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "fedsmooth/report/page/compare_page.h"

namespace fedsmooth::cli {
namespace {

using nlohmann::json;

json difference_json(const Difference& d) {
  return {{"value", d.value}, {"low", d.low}, {"high", d.high}, {"exact", d.exact}};
}

json run_json(const RunRecord& run, int64_t images) {
  return {{"name", run.name}, {"images", images}, {"unbound", run.unbound()}};
}

json points_json(const std::vector<PairedAtRadius>& table) {
  json radii = json::array();
  for (const PairedAtRadius& at : table) {
    radii.push_back({{"radius", at.radius},
                     {"a", at.a},
                     {"b", at.b},
                     {"difference", difference_json(at.difference)},
                     {"both", at.both},
                     {"only_a", at.only_a},
                     {"only_b", at.only_b}});
  }
  return radii;
}

json compared_json(const ComparedRuns& runs, const std::string& page) {
  const PairedComparison& paired = runs.paired;
  json summary = {{"a", run_json(runs.a, runs.images_a)},
                  {"b", run_json(runs.b, runs.images_b)},
                  {"images", paired.images},
                  {"norm", norm_name(paired.norm)},
                  {"certified_accuracy", points_json(paired.table)},
                  {"average_certified_radius",
                   {{"a", paired.acr_a},
                    {"b", paired.acr_b},
                    {"difference", paired.acr ? difference_json(*paired.acr) : json()}}}};
  for (size_t i = 0; runs.threats && i < runs.threats->malicious.size(); ++i) {
    summary["against_malicious"].push_back(
        {{"malicious", runs.threats->malicious[i]},
         {"certified_accuracy", points_json(runs.threats->at[i])}});
  }
  const std::string warning = warn_of_other_data(runs);
  if (!warning.empty()) summary["warning"] = warning;
  if (!page.empty()) summary["page"] = page;
  return summary;
}

}  // namespace

void add_compare(CLI::App& app, CommandContext& common) {
  auto a = std::make_shared<jobs::CompareArguments>();
  Command c(app, common, "compare", "two tables on the images that both have, paired",
            "  fedsmooth compare runs/a runs/b --out compare.html\n"
            "  fedsmooth compare ours=runs/a/certificates.tsv cohen/noise_0.25\n"
            "  fedsmooth compare a.tsv b.tsv --norm linf --values 3072");
  c.argument("a", a->a, "run folder or certificate table, published ones too; NAME=PATH names it");
  c.argument("b", a->b, "the other");
  c.option("out", a->out, "page to write, .html; none if left out");
  add_norm(c, a->tables);
  c.on_run([a, &common] {
    const ComparedRuns runs = jobs::compare(*a);
    print_result(common, compared_json(runs, a->out),
                 render_compare_table(runs) + (a->out.empty() ? "" : a->out + "\n"));
    return 0;
  });
}

}  // namespace fedsmooth::cli
