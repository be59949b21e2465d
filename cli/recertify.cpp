// fedsmooth recertify CERTIFICATES.tsv --alpha A: new radii from the stored counts, without the
// model.
#include "fedsmooth/jobs/recertify.h"

#include "cli/summary.h"

namespace fedsmooth::cli {

void add_recertify(CLI::App& app, CommandContext& common) {
  auto a = std::make_shared<jobs::RecertifyArguments>();
  auto malicious = std::make_shared<std::string>();
  Command c(app, common, "recertify", "new radii at another alpha, from the stored counts",
            "  fedsmooth recertify runs/quickstart/smoothadv/certificates.tsv --alpha 0.01");
  c.argument("certificates", a->table, "table of certificates");
  c.option("alpha", a->alpha, "failure probability per image; required");
  c.option("radius", a->radius, "one-sided or multiclass; the table's own if left out");
  c.option(
      "malicious", *malicious,
      "of several groups: malicious clients that radii are against; the table's own if left out");
  c.option("out", a->out, "table to write; beside the old one if left out");
  c.on_run([a, malicious, &common] {
    if (!malicious->empty()) a->malicious = jobs::parse_malicious(*malicious);
    print_summary(jobs::recertify(*a), common);
    return 0;
  });
}

}  // namespace fedsmooth::cli
