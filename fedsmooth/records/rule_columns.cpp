#include "fedsmooth/records/rule_columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "fedsmooth/smoothing/sequential.h"

namespace fedsmooth {
namespace {

// Removes the text up to and including `end` (all of it if `end` does not occur) and returns it as
// a number.
template <typename T>
std::optional<T> take_number(std::string_view& text, char end) {
  const size_t at = std::min(text.find(end), text.size());
  const std::optional<T> value = parse_number<T>(text.substr(0, at));
  text.remove_prefix(std::min(at + 1, text.size()));
  return value;
}

}  // namespace

VoteRule read_rule(FieldReader& fields) {
  const std::string name = fields.text();
  for (const VoteRule rule : {VoteRule::kFixed, VoteRule::kRadii, VoteRule::kPlan}) {
    if (name == rule_name(rule)) return rule;
  }
  fields.refuse("rule must be fixed, radii or plan");
}

// For example 0@90/100,0.25@117/120,0.5: each radius, and TOP/VOTES at which it was certified.
void read_radii(FieldReader& fields, CertificateRow& row) {
  const std::string column = fields.text();
  if (column == "-") return;
  const auto wrong = [&] { fields.refuse("radii must be a list of RADIUS@COUNT/VOTES or RADIUS"); };
  std::string_view text = column;
  while (!text.empty()) {
    std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const bool latched = item.find('@') != std::string_view::npos;
    const auto radius = take_number<double>(item, '@');
    const bool follows = row.radii.empty() ? radius == 0.0 : radius > row.radii.back();
    if (!radius || !follows) fields.refuse("radii must begin with 0 and rise");
    if (row.radii.size() == kMaxRadii) fields.refuse("radii are too many");
    row.radii.push_back(*radius);
    std::vector<Latch>& latches = row.certificate.latches;
    if (!latched) continue;
    const auto top = take_number<int64_t>(item, '/');
    const auto n = parse_number<int64_t>(item);
    if (!top || !n || latches.size() + 1 != row.radii.size()) wrong();
    latches.push_back({*top, *n});
  }
  if (row.radii.empty()) wrong();
}

std::string format_radii(const CertificateRow& row) {
  if (row.rule != VoteRule::kRadii) return "-";
  std::vector<std::string> items;
  for (size_t i = 0; i < row.radii.size(); ++i) {
    items.push_back(fmt::format("{}", row.radii[i]));
    if (i >= row.certificate.latches.size()) continue;
    const Latch& at = row.certificate.latches[i];
    items.back() += fmt::format("@{}/{}", at.top, at.n);
  }
  return fmt::format("{}", fmt::join(items, ","));
}

std::string_view contradiction_in_rule(const CertificateRow& row) {
  const Certificate& c = row.certificate;
  if (row.cap < 0 || row.cap > kMaxVotes) return "cap must be from 0 to 2^32";
  if (row.rule == VoteRule::kRadii && row.radii.empty()) {
    return "radii must be a list if the rule is radii";
  }
  if (row.rule != VoteRule::kRadii && !row.radii.empty()) {
    return "radii must be - unless the rule is radii";
  }
  if (row.rule == VoteRule::kFixed) return {};
  if (c.counts.n > row.cap) return "n must not be above cap";
  if (row.rule == VoteRule::kPlan) return {};
  if (!(row.beta > 0 && row.beta < 1)) return "beta must lie strictly between 0 and 1";
  if (c.counts.n == 0) return {};
  if (row.abstained() != c.latches.empty()) return "predict is -1 unless radius 0 is certified";
  if (!c.latches.empty() && c.radius != row.radii[c.latches.size() - 1]) {
    return "radius_exact must be the largest certified one of its radii";
  }
  return {};
}

std::string_view unsupported_radii(const CertificateRow& row) {
  const Certificate& claimed = row.certificate;
  if (claimed.counts.n == 0) return {};
  if (!latches_hold(claimed.counts, claimed.latches, row.radii, row.sigma, row.alpha, row.law())) {
    return "the counts at which its radii were certified do not support them";
  }
  const Certificate c =
      certificate_from_latches(claimed.counts, claimed.latches, row.radii, row.sigma, row.law());
  if (claimed.p_lower > c.p_lower * (1 + kRounding)) {
    return "p_lower is above what its counts support";
  }
  return {};
}

}  // namespace fedsmooth
