#include "fedsmooth/jobs/compare.h"

#include <filesystem>

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/file.h"
#include "fedsmooth/report/facts.h"
#include "fedsmooth/report/page/compare_page.h"
#include "fedsmooth/report/threats.h"

namespace fedsmooth::jobs {

namespace {

// Radii against different numbers of malicious clients answer different questions.
void check_threats(const RunRecord& a, const RunRecord& b) {
  const int64_t here = a.rows.front().malicious.value_or(0);
  const int64_t there = b.rows.front().malicious.value_or(0);
  if (here == there) return;
  throw Error(
      "{}: radii are against {}, in {} against {}; `fedsmooth "
      "recertify TABLE --malicious M` makes them alike",
      a.name, malicious_clients(here), b.name, there);
}

}  // namespace

ComparedRuns compare(const CompareArguments& arguments) {
  const std::filesystem::path out = arguments.out;
  if (!out.empty() && out.extension() != ".html") {
    throw Error("--out={}: must end in .html; `plot` draws figures", out.string());
  }
  std::vector<RunRecord> runs = load_runs({arguments.a, arguments.b}, arguments.tables);
  for (RunRecord& run : runs) {
    if (!run.certified()) throw Error("{}: {}", run.name, not_certified(run));
    run.attacks.clear();  // attacks may be on other images
  }
  check_threats(runs[0], runs[1]);
  ComparedRuns compared{std::move(runs[0]), std::move(runs[1])};
  compared.images_a = std::ssize(compared.a.rows);
  compared.images_b = std::ssize(compared.b.rows);
  keep_common_images(compared.a, compared.b);
  compared.paired = compare_paired(compared.a, compared.b);
  compared.threats = compare_threats(compared.a, compared.b);
  if (!out.empty()) write_file(out, render_compare_page(compared));
  return compared;
}

}  // namespace fedsmooth::jobs
