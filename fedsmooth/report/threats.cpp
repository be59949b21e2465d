#include "fedsmooth/report/threats.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>

#include "fedsmooth/base/text.h"
#include "fedsmooth/records/group_columns.h"
#include "fedsmooth/report/facts.h"
#include "fedsmooth/report/summary.h"

namespace fedsmooth {
namespace {

constexpr int kMostRadii = 8;

bool was_stopped_early(const RunRecord& run) { return run.rows.front().rule == VoteRule::kRadii; }

std::vector<int64_t> numbers_shown(const RunRecord& run) {
  const int64_t own = *run.rows.front().malicious;
  if (was_stopped_early(run)) return {own};
  const int64_t most = run.identity.groups.value_or(2) / 2;
  std::set<int64_t> shown = {own};
  for (const int64_t m : {0, 1, 2, 5, 10}) {
    if (m <= most) shown.insert(m);
  }
  return {shown.begin(), shown.end()};
}

// Lines of at most 96 characters, indented by two.
std::string wrapped(const std::string& text) {
  constexpr size_t kWidth = 96;
  std::string lines = "  ";
  size_t column = 0;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (column > 0 && column + 1 + word.size() > kWidth) {
      lines += "\n  ";
      column = 0;
    }
    if (column > 0) lines += " ";
    column += word.size() + (column > 0 ? 1 : 0);
    lines += word;
  }
  return lines + "\n";
}

std::string threat_header(std::string_view title, Norm norm, const std::vector<double>& radii) {
  std::string text = fmt::format("  {:<26}", title);
  for (const double r : radii) text += fmt::format("{:>8}", format_step(norm, r));
  return text + fmt::format("  {} radius\n", norm_name(norm));
}

std::string threat_name(int64_t malicious) {
  return fmt::format("  {:<26}", malicious_clients(malicious));
}

}  // namespace

std::vector<CertificateRow> rows_against(const RunRecord& run, int64_t malicious) {
  if (run.rows.front().malicious == malicious) return run.rows;
  std::vector<CertificateRow> rows = against(run.rows, malicious);
  for (CertificateRow& row : rows) {
    row.certificate.radius = radius_in(run.norm, row.certificate.radius, run.values);
  }
  return rows;
}

std::optional<Threats> list_threats(const RunRecord& run) {
  if (!run.certified() || !run.rows.front().malicious) return std::nullopt;
  Threats threats;
  threats.malicious = numbers_shown(run);
  std::vector<std::vector<CertificateRow>> rows;
  double largest = 0;
  for (const int64_t m : threats.malicious) {
    rows.push_back(rows_against(run, m));
    largest = std::max(largest, largest_radius(rows.back()));
  }
  threats.radii = standard_radii(largest, run.norm, kMostRadii);
  for (const std::vector<CertificateRow>& against_m : rows) {
    std::vector<double>& accuracy = threats.accuracy.emplace_back();
    for (const double r : threats.radii) accuracy.push_back(certified_accuracy(against_m, r));
  }
  return threats;
}

std::optional<PairedThreats> compare_threats(const RunRecord& a, const RunRecord& b) {
  const auto of_a = list_threats(a), of_b = list_threats(b);
  if (!of_a || !of_b) return std::nullopt;
  PairedThreats found;
  std::ranges::set_intersection(of_a->malicious, of_b->malicious,
                                std::back_inserter(found.malicious));
  found.radii = of_a->radii.back() >= of_b->radii.back() ? of_a->radii : of_b->radii;
  for (const int64_t m : found.malicious) {
    const std::vector<CertificateRow> here = rows_against(a, m), there = rows_against(b, m);
    std::vector<PairedAtRadius>& row = found.at.emplace_back();
    for (const double r : found.radii) row.push_back(compare_at(here, there, r));
  }
  return found;
}

std::string level_of_threats(const RunRecord& run) {
  const CertificateRow& row = run.rows.front();
  const std::string alpha = fmt::format("{:.4g}", row.alpha);
  if (was_stopped_early(run)) {
    return fmt::format(
        "All radii hold at once at alpha = {} per image. Votes were stopped early, so other "
        "numbers "
        "of malicious clients cannot be read from them.",
        alpha);
  }
  std::string text = fmt::format(
      "For one radius that was fixed before the votes, its column holds at alpha = {} per image "
      "for "
      "all numbers of malicious clients at once. Otherwise each point holds at this alpha by "
      "itself.",
      alpha);
  if (row.rule == VoteRule::kFixed && *row.malicious > 0) {
    text += fmt::format(" An image's radii against up to {} hold all at once at {:.4g}.",
                        malicious_clients(*row.malicious),
                        row.alpha * (static_cast<double>(*row.malicious) + 1));
  }
  return text;
}

std::vector<std::string> list_assumptions(const RunRecord& run) {
  const CertificateIdentity& i = run.identity;
  return {
      "Clients are counted, not parties: each party has one client.",
      "The server is honest: a client's update reaches the model of its group alone.",
      "The experiment and its number of groups were not chosen by what these clients' models did.",
      "The radius, and the number of malicious clients, were fixed before the votes.",
      i.seed_given.value_or(false)
          ? fmt::format("The votes' seed, {}, was given: no client may have known it in training.",
                        i.seed.value_or(0))
          : "The votes' seed was drawn from the operating system after training.",
  };
}

std::string render_threats(const RunRecord& run, const Threats& t) {
  std::string text = threat_header("certified % against", run.norm, t.radii);
  for (size_t i = 0; i < t.malicious.size(); ++i) {
    text += threat_name(t.malicious[i]);
    for (const double accuracy : t.accuracy[i]) text += fmt::format("{:>8}", percent(accuracy));
    text += "\n";
  }
  text += wrapped(level_of_threats(run));
  text += "  This takes for granted:\n";
  for (const std::string& line : list_assumptions(run)) text += wrapped("- " + line);
  return text;
}

std::string render_compared_threats(Norm norm, const PairedThreats& t) {
  std::string text = threat_header("A - B, points, against", norm, t.radii);
  for (size_t i = 0; i < t.malicious.size(); ++i) {
    text += threat_name(t.malicious[i]);
    for (const PairedAtRadius& at : t.at[i]) {
      const Difference& d = at.difference;
      text += fmt::format("{:>+7.1f}{}", 100 * d.value, d.low > 0 || d.high < 0 ? "!" : " ");
    }
    text += "\n";
  }
  return text + "  !: the 95% interval of this difference, by itself, does not have 0\n";
}

}  // namespace fedsmooth
