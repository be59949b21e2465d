#include <fmt/format.h>

#include <algorithm>

#include "fedsmooth/base/text.h"
#include "fedsmooth/report/facts.h"
#include "fedsmooth/report/page/html.h"
#include "fedsmooth/report/summary.h"
#include "fedsmooth/report/threats.h"

namespace fedsmooth {
namespace {

constexpr size_t kWidth = 100;

std::string render_accuracy(const RunRecord& run) {
  const std::string norm(norm_name(run.norm));
  std::string text = fmt::format("  {:>12}{:>13}{:>18}{:>12}\n", norm + " radius", "certified %",
                                 "95% interval", "at least*");
  for (const AtRadius& at : summarize(run.rows, run.norm).table) {
    text += fmt::format("  {:>12}{:>13}{:>18}{:>12}\n", format_step(run.norm, at.radius),
                        percent(at.accuracy.value),
                        percent(at.accuracy.low) + " to " + percent(at.accuracy.high),
                        at.high_probability ? percent_at_least(*at.high_probability) : "");
  }
  return text;
}

std::string render_run(const RunRecord& run) {
  std::string text = shorten(run.name, kWidth) + "\n";
  text += run.certified() ? render_accuracy(run) : "  " + not_certified(run) + "\n";
  if (const auto threats = list_threats(run)) text += render_threats(run, *threats);
  for (const auto& [name, value] : list_facts(run)) {
    text += fmt::format("  {:<26}{}\n", name, value);
  }
  for (const std::string& warning : list_warnings(run)) {
    text += fmt::format("  warning: {}\n", warning);
  }
  return text;
}

}  // namespace

std::string render_table(const std::vector<RunRecord>& runs) {
  std::string text;
  for (const RunRecord& run : runs) text += render_run(run) + "\n";
  if (std::none_of(runs.begin(), runs.end(), [](const auto& run) { return run.certified(); })) {
    return text;
  }
  return text +
         "* with probability 99.9% over the noise of all certificates together. Radii certify the\n"
         "  smoothed classifier; each certificate fails with probability at most alpha.\n";
}

}  // namespace fedsmooth
