#include "cli/comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "fedsmooth/report/facts.h"
#include "fedsmooth/report/summary.h"
#include "fedsmooth/report/text.h"

namespace fedsmooth::cli {
namespace {

constexpr double kStep = 0.25;
constexpr size_t kMaxRadii = 8;
constexpr size_t kNameWidth = 40;

// From 0 to the largest at which any run is certified.
std::vector<double> choose_radii(const std::vector<Summary>& summaries) {
  double largest = 0;
  for (const Summary& summary : summaries) {
    if (!summary.table.empty()) largest = std::max(largest, summary.table.back().radius);
  }
  double step = kStep;
  while (largest / step >= kMaxRadii) step *= 2;
  std::vector<double> radii;
  for (int i = 0; i * step <= largest; ++i) radii.push_back(i * step);
  return radii;
}

}  // namespace

std::string render_comparison(const std::vector<ReportRun>& runs) {
  std::vector<Summary> summaries;
  size_t width = 0;
  for (const ReportRun& run : runs) {
    summaries.push_back(summarize(run.rows));
    width = std::max(width, shorten(run.name, kNameWidth).size());
  }
  const std::vector<double> radii = choose_radii(summaries);
  std::string text = fmt::format("{:<{}}", "certified % at radius", std::max<size_t>(width, 21));
  width = text.size();
  for (const double radius : radii) text += fmt::format("{:>6.2f}", radius);
  text += fmt::format("{:>7}{:>9}{:>9}\n", "ACR", "abstain", "classes");
  for (size_t i = 0; i < runs.size(); ++i) {
    const Summary& s = summaries[i];
    text += fmt::format("{:<{}}", shorten(runs[i].name, kNameWidth), width);
    for (const double radius : radii) {
      text += fmt::format("{:>6}", percent(certified_accuracy(runs[i].rows, radius)));
    }
    text +=
        fmt::format("{:>7.3f}{:>9}{:>9}\n", s.average_certified_radius, percent(s.abstained.value),
                    fmt::format("{}/{}", s.distinct_predictions, s.distinct_labels));
  }
  return text +
         "ACR: average certified radius. classes: answered at least once, of those that occur.\n";
}

}  // namespace fedsmooth::cli
