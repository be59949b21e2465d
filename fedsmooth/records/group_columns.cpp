#include "fedsmooth/records/group_columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

constexpr std::string_view kNotGiven = "-";

// Whether the row must have gaps: if it is of several groups, and its number of votes was fixed in
// advance.
bool needs_gaps(const CertificateRow& row) {
  return row.malicious && row.rule != VoteRule::kRadii && row.certificate.counts.n > 0;
}

// Returns why the gaps do not sum to n or disagree with the other counts; empty if they agree.
std::string_view contradiction_in_gaps(const Counts& counts, int64_t malicious) {
  int64_t left = counts.n;
  for (const int64_t copies : counts.gaps) {
    if (copies < 0 || copies > left) return "gaps do not add up to n";
    left -= copies;
  }
  if (left != 0) return "gaps do not add up to n";
  const int64_t groups = groups_of(counts.gaps);
  if (groups < 2 || groups > kMaxGroups) return "gaps are not those of 2 to 10000 groups";
  if (malicious > groups / 2) return "malicious is above half of the groups";
  // A gap is G only if class 0 is selected: otherwise a lower class would win a tie.
  if (counts.selected > 0 && counts.gaps[groups] > 0) return "gaps are out of range";
  if (counts.top != copies_safe_from(counts.gaps, malicious)) {
    return "count_top is not that of gaps and malicious";
  }
  if (counts.runner_up > counts.gaps.back()) return "count_runner_up is above the gaps below 0";
  return {};
}

}  // namespace

std::optional<int64_t> read_malicious(FieldReader& fields) {
  const std::string text = fields.text();
  if (text == kNotGiven) return std::nullopt;
  const auto malicious = parse_number<int64_t>(text);
  if (!malicious || *malicious < 0) fields.refuse("malicious must be a whole number or -");
  return malicious;
}

std::string format_malicious(const CertificateRow& row) {
  return row.malicious ? fmt::format("{}", *row.malicious) : std::string(kNotGiven);
}

Gaps read_gaps(FieldReader& fields) {
  const std::string column = fields.text();
  Gaps gaps;
  if (column == kNotGiven) return gaps;
  for (std::string_view text = column;;) {
    const size_t comma = text.find(',');
    const auto copies = parse_number<int64_t>(text.substr(0, comma));
    if (!copies) fields.refuse("gaps must be a list of whole numbers");
    if (std::ssize(gaps) == kMaxGroups + 2) fields.refuse("gaps are too many");
    gaps.push_back(*copies);
    if (comma == std::string_view::npos) return gaps;
    text.remove_prefix(comma + 1);
  }
}

std::string format_gaps(const CertificateRow& row) {
  const Gaps& gaps = row.certificate.counts.gaps;
  return gaps.empty() ? std::string(kNotGiven) : fmt::format("{}", fmt::join(gaps, ","));
}

std::string_view contradiction_in_groups(const CertificateRow& row) {
  const Counts& counts = row.certificate.counts;
  if (!needs_gaps(row)) {
    return counts.gaps.empty() ? "" : "gaps must be - for one network, no votes or the rule radii";
  }
  if (counts.gaps.empty()) return "gaps must be a list where malicious is a number";
  return contradiction_in_gaps(counts, *row.malicious);
}

CertificateRow against(const CertificateRow& row, int64_t malicious) {
  if (row.malicious == malicious) return row;
  if (!row.malicious) throw Error("malicious={}: image {} is of one network", malicious, row.index);
  if (row.rule == VoteRule::kRadii) {
    throw Error(
        "malicious={}: votes were stopped early (--radii), against {}; certify again for another "
        "number",
        malicious, *row.malicious);
  }
  CertificateRow other = row;
  other.malicious = malicious;
  Counts& counts = other.certificate.counts;
  if (counts.n == 0) return other;
  counts.top = copies_safe_from(counts.gaps, malicious);
  other.certificate = certificate_from_counts(Counts(counts), row.sigma, row.alpha,
                                              RadiusKind::kOneSided, row.law());
  return other;
}

std::vector<CertificateRow> against(const std::vector<CertificateRow>& rows, int64_t malicious) {
  std::vector<CertificateRow> others;
  for (const CertificateRow& row : rows) others.push_back(against(row, malicious));
  return others;
}

}  // namespace fedsmooth
