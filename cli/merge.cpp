// fedsmooth merge F.tsv... --out G.tsv: joins the shards of one certification.
#include "fedsmooth/jobs/merge.h"

#include "cli/summary.h"
#include "fedsmooth/base/error.h"

namespace fedsmooth::cli {

void add_merge(CLI::App& app, CommandContext& common) {
  struct Arguments {
    std::vector<std::string> tables;
    std::string out;
  };
  auto a = std::make_shared<Arguments>();
  Command c(app, common, "merge", "join the shards of one certification",
            "  fedsmooth merge part1.tsv part2.tsv --out all.tsv");
  c.arguments("tables", a->tables, "the shards' tables");
  c.option("out", a->out, "table to write");
  c.on_run([a, &common] {
    if (a->out.empty()) throw Error("merge: needs --out");
    jobs::merge(a->tables, a->out);
    print_summary(a->out, common);
    return 0;
  });
}

}  // namespace fedsmooth::cli
