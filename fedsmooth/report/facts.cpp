#include "fedsmooth/report/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fedsmooth/report/text.h"

namespace fedsmooth {
namespace {

constexpr size_t kLongestDescription = 72;

/// The value that all rows share, or the range of their values.
template <typename Field>
std::string range_of(const std::vector<CertificateRow>& rows, Field field) {
  const auto [low, high] = std::minmax_element(
      rows.begin(), rows.end(), [&](const auto& a, const auto& b) { return field(a) < field(b); });
  if (field(*low) == field(*high)) return fmt::format("{}", field(*low));
  return fmt::format("{} to {}", field(*low), field(*high));
}

bool same_classifier(const CertificateRow& a, const CertificateRow& b) {
  return a.base == b.base && a.sigma == b.sigma;
}

}  // namespace

std::string percent(double share) { return fmt::format("{:.1f}", 100 * share); }

std::string percent_at_least(double share) { return percent(std::floor(1000 * share) / 1000); }

std::string format_share(const Share& share) {
  return fmt::format("{}% [{}, {}]", percent(share.value), percent(share.low), percent(share.high));
}

std::vector<std::pair<std::string, std::string>> list_facts(const std::vector<CertificateRow>& rows,
                                                            const Summary& summary) {
  using Row = const CertificateRow&;
  return {
      {"images", fmt::format("{}", summary.images)},
      {"abstained", format_share(summary.abstained)},
      {"wrong but certified", format_share(summary.wrong_but_certified)},
      {"average certified radius", fmt::format("{:.3f}", summary.average_certified_radius)},
      {"classes predicted", fmt::format("{} ({} occur as labels)", summary.distinct_predictions,
                                        summary.distinct_labels)},
      {"sigma", range_of(rows, [](Row row) { return row.sigma; })},
      {"alpha, per image", range_of(rows, [](Row row) { return row.alpha; })},
      {"n0", range_of(rows, [](Row row) { return row.n0; })},
      {"n", range_of(rows, [](Row row) { return row.certificate.counts.n; })},
      {"median time", fmt::format("{:.3g} s per certificate", summary.median_seconds)},
      {"base classifier", shorten(rows.front().base, kLongestDescription)},
  };
}

std::vector<std::string> list_warnings(const std::vector<CertificateRow>& rows,
                                       const Summary& summary) {
  std::vector<std::string> warnings;
  if (summary.distinct_predictions == 0) {
    warnings.push_back("It never answers: every image was abstained on.");
  } else if (summary.distinct_predictions == 1) {
    warnings.push_back("It answers one class only; a constant certifies at every radius.");
  } else if (summary.distinct_predictions < summary.distinct_labels) {
    warnings.push_back(fmt::format("It answers only {} classes although {} occur as labels.",
                                   summary.distinct_predictions, summary.distinct_labels));
  }
  if (!std::all_of(rows.begin(), rows.end(),
                   [&](const auto& row) { return same_classifier(row, rows.front()); })) {
    warnings.push_back("The certificates are about several classifiers (sigma or base differs).");
  }
  return warnings;
}

}  // namespace fedsmooth
