// fedsmooth report RUN... [--out F.html|md]: one self-contained page, or a table.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/advice.h"
#include "cli/against.h"
#include "cli/summary.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/jobs/load_run.h"
#include "fedsmooth/jobs/report.h"
#include "fedsmooth/report/comparison.h"
#include "fedsmooth/report/page/html.h"

namespace fedsmooth::cli {
namespace {

namespace fs = std::filesystem;

fs::path default_page(const std::vector<std::string>& runs) {
  const bool named = !fs::exists(runs[0]) && runs[0].find('=') != std::string::npos;
  if (runs.size() > 1 || named) throw Error("report: several runs, or NAME=PATH, need --out");
  fs::path page = runs[0];
  if (fs::is_directory(page)) return page / "report.html";
  // Others call their tables noise_0.25, say.
  return page.extension() == ".tsv" ? page.replace_extension(".html") : page += ".html";
}

struct ReportArguments {
  std::vector<std::string> runs;
  std::string out;
  jobs::TableOptions tables;
  jobs::AgainstOptions against;
};

}  // namespace

void add_report(CLI::App& app, CommandContext& common) {
  auto a = std::make_shared<ReportArguments>();
  Command c(app, common, "report", "write one self-contained HTML page about runs",
            "  fedsmooth report runs/quickstart/smoothadv\n"
            "  fedsmooth report runs/a runs/b --out compare.html\n"
            "  fedsmooth report runs/paper --out paper.md\n"
            "  fedsmooth report cohen/noise_0.25 --sigma 0.25 --norm linf --values 3072");
  c.arguments(
      "runs", a->runs,
      "run folders or certificate tables (published ones too), by NAME=PATH under another name; or "
      "a sweep's folder");
  c.option("out", a->out,
           "page to write; report.html in the run if left out; F.md: a table in Markdown instead");
  add_norm(c, a->tables);
  c.option("data", a->tables.data,
           "data set's folder, for its images; where the run had it if left out");
  c.option("sigma", a->tables.sigma, "noise level of published tables, which do not state it");
  c.option("alpha", a->tables.alpha, "failure probability per image of published tables");
  c.option("n", a->tables.n, "votes per image of published tables");
  add_against(c, a->against);
  c.on_run([a, &common] {
    const fs::path out = a->out.empty() ? default_page(a->runs) : fs::path(a->out);
    const std::vector<RunRecord> runs =
        jobs::report(a->runs, out, common.context, a->tables, a->against);
    const bool is_sweep = a->runs.size() == 1 && jobs::holds_runs(a->runs[0]);
    nlohmann::json unbound = nlohmann::json::array(), results = nlohmann::json::array();
    for (const RunRecord& run : runs) {
      results.push_back(summary_json(run));
      if (run.unbound()) unbound.push_back(run.name);
    }
    nlohmann::json summary = {{"report", out.string()},
                              {"runs", runs.size()},
                              {"unbound", unbound},
                              {"results", results}};
    std::string text = (is_sweep ? render_comparison(runs) : render_table(runs)) + "\n";
    for (const RunRecord& run : runs) {
      if (!run.against) continue;
      summary["against"].push_back(against_json(*run.against));
      text += render_against(*run.against);
    }
    print_result(common, summary, fmt::format("{}{}\n", text, out.string()));
    suggest_opening(common, out);
    return 0;
  });
}

}  // namespace fedsmooth::cli
