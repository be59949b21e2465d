#include "fedsmooth/report/comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "fedsmooth/base/text.h"
#include "fedsmooth/report/facts.h"
#include "fedsmooth/report/summary.h"

namespace fedsmooth {
namespace {

constexpr double kStep = 0.25;
constexpr size_t kMaxRadii = 8;
constexpr std::string_view kNotCertified = "not certified yet";

// From 0 to the largest at which any run is certified.
std::vector<double> choose_radii(const std::vector<ReportRun>& runs) {
  double largest = 0;
  for (const ReportRun& run : runs) {
    if (!run.certified()) continue;
    const std::vector<AtRadius> table = summarize(run.rows).table;
    if (!table.empty()) largest = std::max(largest, table.back().radius);
  }
  double step = kStep;
  while (largest / step >= kMaxRadii) step *= 2;
  std::vector<double> radii;
  for (int i = 0; i * step <= largest; ++i) radii.push_back(i * step);
  return radii;
}

std::string percent_abstained(const Summary& s) {
  return s.abstained ? percent(s.abstained->value) : "";
}

std::string comparison_line(const ReportRun& run, const std::vector<double>& radii) {
  if (!run.certified()) return fmt::format("  {}", kNotCertified);
  const Summary s = summarize(run.rows);
  std::string line;
  for (const double radius : radii) {
    const bool possible = can_certify(run.rows, radius);
    line += fmt::format("{:>6}", possible ? percent(certified_accuracy(run.rows, radius)) : "");
  }
  return line + fmt::format("{:>7.3f}{:>9}{:>9}", s.average_certified_radius, percent_abstained(s),
                            fmt::format("{}/{}", s.distinct_predictions, s.distinct_labels));
}

std::string markdown_cells(const ReportRun& run, const std::vector<double>& radii) {
  if (!run.certified()) return fmt::format(" {} |", kNotCertified);
  const Summary s = summarize(run.rows);
  std::string cells = fmt::format(" {} |", s.images);
  for (const double radius : radii) {
    if (!can_certify(run.rows, radius)) {
      cells += " |";
      continue;
    }
    const Share share = accuracy_at(run.rows, radius).accuracy;
    cells +=
        fmt::format(" {} ({}–{}) |", percent(share.value), percent(share.low), percent(share.high));
  }
  return cells + fmt::format(" {:.3f} | {} |", s.average_certified_radius, percent_abstained(s));
}

std::string escape_markdown(const std::string& text) {
  std::string escaped;
  for (const char c : one_line(text)) {
    if (std::string_view("\\`*_<[|").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

}  // namespace

std::string render_comparison(const std::vector<ReportRun>& runs) {
  const std::vector<double> radii = choose_radii(runs);
  const std::string corner = "certified % at radius";
  size_t width = corner.size();
  for (const ReportRun& run : runs) width = std::max(width, one_line(run.name).size());
  std::string text = fmt::format("{:<{}}", corner, width);
  for (const double radius : radii) text += fmt::format("{:>6.2f}", radius);
  text += fmt::format("{:>7}{:>9}{:>9}\n", "ACR", "abstain", "classes");
  for (const ReportRun& run : runs) {
    text += fmt::format("{:<{}}{}\n", one_line(run.name), width, comparison_line(run, radii));
  }
  return text +
         "ACR: average certified radius. classes: answered at least once, of those that occur.\n";
}

std::string render_markdown(const std::vector<ReportRun>& runs) {
  const std::vector<double> radii = choose_radii(runs);
  std::string text = "| certified % at radius | images |", rule = "|---|--:|";
  for (const double radius : radii) {
    text += fmt::format(" {:.2f} |", radius);
    rule += "--:|";
  }
  text += " ACR | abstained % |\n" + rule + "--:|--:|\n";
  for (const ReportRun& run : runs) {
    text += fmt::format("| {} |{}\n", escape_markdown(run.name), markdown_cells(run, radii));
  }
  return text +
         "\nIn brackets 95% intervals over the choice of test images. ACR: average certified "
         "radius.\n";
}

}  // namespace fedsmooth
