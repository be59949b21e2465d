#include "fedsmooth/records/tally_columns.h"

#include <fmt/format.h>

#include <charconv>
#include <iterator>

namespace fedsmooth {
namespace {

constexpr std::string_view kNone = "-";

// Removes a number from the front of the text and returns it; none if the text begins otherwise.
std::optional<int64_t> take_number(std::string_view& text) {
  int64_t value = 0;
  const auto [stop, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{}) return std::nullopt;
  text.remove_prefix(stop - text.data());
  return value;
}

bool take(char expected, std::string_view& text) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

Tally read_tally(FieldReader& fields, std::string_view name) {
  Tally tally;
  const std::string column = fields.text();
  if (column == kNone) return tally;
  std::string_view text = column;
  int64_t least = 0;
  do {
    const auto label = take_number(text);
    const bool separated = take(':', text);
    const auto votes = take_number(text);
    if (!label || !separated || !votes) {
      fields.refuse(fmt::format("{} must be a list of CLASS:VOTES, or -", name));
    }
    if (*label < least || *label > kMaxClass) {
      fields.refuse(
          fmt::format("{} must name classes in ascending order, from 0 to {}", name, kMaxClass));
    }
    if (*votes < 1 || *votes > kMaxVotes) {
      fields.refuse(fmt::format("{} must lie between 1 and 2^32 for each class", name));
    }
    tally.push_back({*label, *votes});
    least = *label + 1;
  } while (take(',', text));
  if (!text.empty()) fields.refuse(fmt::format("{} must be a list of CLASS:VOTES, or -", name));
  return tally;
}

std::string format_tally(const Tally& tally) {
  if (tally.empty()) return std::string(kNone);
  std::string text;
  for (const ClassVotes& of : tally) {
    fmt::format_to(std::back_inserter(text), "{}{}:{}", text.empty() ? "" : ",", of.label,
                   of.votes);
  }
  return text;
}

std::string_view contradiction_in_tallies(const CertificateRow& row) {
  const Counts& counts = row.certificate.counts;
  if (!counts.selection.empty()) {
    if (total_votes(counts.selection) > row.n0) return "selection_votes add up to more than n0";
    if (most_voted(counts.selection) != counts.selected) {
      return "selected is not the class with the most selection_votes";
    }
  }
  if (counts.votes.empty()) return {};
  // A copy whose logits are not finite votes for nobody, so they may add up to less.
  if (total_votes(counts.votes) > counts.n) return "votes add up to more than n";
  // With several groups, count_top leaves out the copies that malicious clients could change.
  const int64_t safe = counts.gaps.empty() ? counts.top : copies_safe_from(counts.gaps, 0);
  const int64_t found = votes_for(counts.votes, counts.selected);
  const bool stopped_early = row.malicious.value_or(0) > 0 && counts.gaps.empty();
  if (stopped_early ? found < counts.top : found != safe) {
    return "votes of the selected class are not count_top";
  }
  if (most_for_another(counts.votes, counts.selected) != counts.runner_up) {
    return "the most votes of another class are not count_runner_up";
  }
  return {};
}

}  // namespace fedsmooth
