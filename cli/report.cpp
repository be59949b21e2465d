// fedsmooth report RUN... [--out F.html]: one self-contained page.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/tables.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/report/html.h"

namespace fedsmooth::cli {
namespace {

namespace fs = std::filesystem;

fs::path default_page(const std::vector<std::string>& runs) {
  if (runs.size() > 1) throw Error("report: several runs need --out");
  return fs::is_directory(runs[0]) ? fs::path(runs[0]) / "report.html"
                                   : fs::path(runs[0]).replace_extension(".html");
}

}  // namespace

void add_report(CLI::App& app, Common& common) {
  struct Arguments {
    std::vector<std::string> runs;
    std::string out;
  };
  auto a = std::make_shared<Arguments>();
  Command c(app, common, "report", "write one self-contained HTML page about runs",
            "  fedsmooth report runs/quickstart/smoothadv\n"
            "  fedsmooth report runs/a runs/b --out compare.html");
  c.arguments("runs", a->runs, "run folders or certificate tables");
  c.option("out", a->out, "page to write; report.html in the run if left out");
  c.on_run([a, &common] {
    const std::vector<ReportRun> runs = load_runs(a->runs);
    const fs::path out = a->out.empty() ? default_page(a->runs) : fs::path(a->out);
    write_file(out, render_report(runs));
    if (common.json) {
      fmt::print("{}\n", nlohmann::json{{"report", out.string()}, {"runs", runs.size()}}.dump());
    } else if (!common.quiet) {
      fmt::print("{}\n{}\n", render_table(runs), out.string());
    }
    return 0;
  });
}

}  // namespace fedsmooth::cli
