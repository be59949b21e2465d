#include "fedsmooth/report/comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "fedsmooth/base/text.h"
#include "fedsmooth/report/against.h"
#include "fedsmooth/report/client_accuracy.h"
#include "fedsmooth/report/facts.h"
#include "fedsmooth/report/summary.h"
#include "fedsmooth/report/threats.h"

namespace fedsmooth {
namespace {

constexpr int kMaxRadii = 8;
constexpr std::string_view kNotCertified = "not certified yet";

// All runs are loaded in the same one.
Norm norm_of(const std::vector<RunRecord>& runs) { return runs.empty() ? Norm::kL2 : runs[0].norm; }

// From 0 to the largest at which any run is certified.
std::vector<double> choose_radii(const std::vector<RunRecord>& runs) {
  double largest = 0;
  for (const RunRecord& run : runs) largest = std::max(largest, largest_radius(run.rows));
  return standard_radii(largest, norm_of(runs), kMaxRadii);
}

std::string percent_abstained(const Summary& s) {
  return s.abstained ? percent(s.abstained->value) : "";
}

// Of the classes that occur as labels, those that are the answer for some image.
std::string answered_classes(const Summary& s) {
  const auto is_answered = [](const ClassSummary& c) { return c.images > 0 && c.predicted > 0; };
  return fmt::format("{}/{}", std::ranges::count_if(s.classes, is_answered), s.distinct_labels);
}

std::string comparison_line(const RunRecord& run, const std::vector<double>& radii) {
  if (!run.certified()) return fmt::format("  {}", kNotCertified);
  const Summary s = summarize(run.rows);
  std::string line;
  for (const double radius : radii) {
    const bool possible = can_certify(run, radius);
    line += fmt::format("{:>7}", possible ? percent(certified_accuracy(run.rows, radius)) : "");
  }
  return line + fmt::format("{:>9}{:>9}{:>9}", format_mean(run.norm, s.average_certified_radius),
                            percent_abstained(s), answered_classes(s));
}

// The worst client's certified accuracy at radius 0; empty where clients are not known.
std::string worst_client(const RunRecord& run) {
  const auto clients = summarize_clients(run.rows, run.clients, 0);
  if (!clients) return {};
  return fmt::format("{} ({}–{})", percent(clients->worst.accuracy), percent(clients->worst_low),
                     percent(clients->worst_high));
}

std::string markdown_cells(const RunRecord& run, const std::vector<double>& radii,
                           bool with_clients) {
  if (!run.certified()) return fmt::format(" {} |", kNotCertified);
  const Summary s = summarize(run.rows);
  std::string cells = fmt::format(" {} |", s.images);
  for (const double radius : radii) {
    if (!can_certify(run, radius)) {
      cells += " |";
      continue;
    }
    const Proportion share = accuracy_at(run.rows, radius).accuracy;
    cells +=
        fmt::format(" {} ({}–{}) |", percent(share.value), percent(share.low), percent(share.high));
  }
  cells += fmt::format(" {} | {} |", format_mean(run.norm, s.average_certified_radius),
                       percent_abstained(s));
  return with_clients ? cells + fmt::format(" {} |", worst_client(run)) : cells;
}

std::string escape_markdown(const std::string& text) {
  std::string escaped;
  for (const char c : one_line(text)) {
    if (std::string_view("\\`*_<[|").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// A table for each run of several groups.
std::string markdown_threats(const RunRecord& run) {
  const auto threats = list_threats(run);
  if (!threats) return {};
  std::string text = fmt::format("\n| {}, certified % at {} radius |", escape_markdown(run.name),
                                 norm_name(run.norm));
  std::string rule = "|---|";
  for (const double r : threats->radii) {
    text += fmt::format(" {} |", format_step(run.norm, r));
    rule += "--:|";
  }
  text += "\n" + rule + "\n";
  for (size_t i = 0; i < threats->malicious.size(); ++i) {
    text += fmt::format("| against {} malicious |", threats->malicious[i]);
    for (const double share : threats->accuracy[i]) text += fmt::format(" {} |", percent(share));
    text += "\n";
  }
  text += "\n" + level_of_threats(run) + "\n\nThis takes for granted:\n\n";
  for (const std::string& line : list_assumptions(run)) text += "- " + line + "\n";
  return text;
}

std::string markdown_against(const RunRecord& run) {
  if (!run.against || run.against->found.images == 0) return {};
  std::string radii, rule, shares;
  for (const ShareAtRadius& at : run.against->found.certified) {
    radii += fmt::format(" {} |", format_step(run.norm, at.radius));
    rule += "--:|";
    shares += fmt::format(" {} |", percent(at.share.value));
  }
  return fmt::format(
      "\n| {}, certified % at {} radius |{}\n|---|{}\n| {} |{}\n\nOf {} images, at alpha {} per "
      "image, "
      "if the classes were chosen before the votes were drawn.\n",
      escape_markdown(run.name), norm_name(run.norm), radii, rule,
      escape_markdown(run.against->claim), shares, run.against->found.images, run.against->alpha);
}

}  // namespace

std::string render_comparison(const std::vector<RunRecord>& runs) {
  const std::vector<double> radii = choose_radii(runs);
  const Norm norm = norm_of(runs);
  const std::string corner = fmt::format("certified % at {} radius", norm_name(norm));
  size_t width = corner.size();
  for (const RunRecord& run : runs) width = std::max(width, one_line(run.name).size());
  std::string text = fmt::format("{:<{}}", corner, width);
  for (const double radius : radii) text += fmt::format("{:>7}", format_step(norm, radius));
  text += fmt::format("{:>9}{:>9}{:>9}\n", "ACR", "abstain", "classes");
  for (const RunRecord& run : runs) {
    text += fmt::format("{:<{}}{}\n", one_line(run.name), width, comparison_line(run, radii));
  }
  return text +
         "ACR: average certified radius. classes: answered at least once, of those that occur.\n";
}

std::string render_markdown(const std::vector<RunRecord>& runs) {
  const std::vector<double> radii = choose_radii(runs);
  const Norm norm = norm_of(runs);
  std::string text = fmt::format("| certified % at {} radius | images |", norm_name(norm));
  std::string rule = "|---|--:|";
  for (const double radius : radii) {
    text += fmt::format(" {} |", format_step(norm, radius));
    rule += "--:|";
  }
  const bool with_clients = std::any_of(runs.begin(), runs.end(),
                                        [](const RunRecord& run) { return !run.clients.empty(); });
  text += fmt::format(" ACR | abstained % |{}\n{}--:|--:|{}\n",
                      with_clients ? " worst client % |" : "", rule, with_clients ? "--:|" : "");
  for (const RunRecord& run : runs) {
    text += fmt::format("| {} |{}\n", escape_markdown(run.name),
                        markdown_cells(run, radii, with_clients));
  }
  text +=
      "\nIn brackets 95% intervals over the choice of test images. ACR: average certified radius.";
  if (with_clients) {
    text +=
        " Worst client: an estimate of the least that any client may expect at radius 0, on data "
        "like its own; its interval holds for all clients at once.";
  }
  text += "\n";
  for (const RunRecord& run : runs) text += markdown_threats(run) + markdown_against(run);
  return text;
}

}  // namespace fedsmooth
