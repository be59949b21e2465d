#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/text.h"
#include "fedsmooth/report/attacked.h"
#include "fedsmooth/report/facts.h"

namespace fedsmooth {
namespace {

using Warnings = std::vector<std::string>;

constexpr size_t kLongestBase = 60;

bool same_classifier(const CertificateRow& a, const CertificateRow& b) {
  return a.base == b.base && a.sigma == b.sigma;
}

void check_certificates(const std::vector<CertificateRow>& rows, Warnings& warnings) {
  const Summary summary = summarize(rows);
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
}

void check_contradictions(const RunRecord& run, Warnings& warnings) {
  if (!run.attacked_base.empty() && run.attacked_base != run.rows.front().base) {
    warnings.push_back(
        fmt::format("The attack was on another base classifier, {}; its curve bounds that one's.",
                    shorten(run.attacked_base, kLongestBase)));
  }
  const Contradictions found = find_contradictions(run.rows, run.attacks);
  if (found.broken == 0) return;
  warnings.push_back(
      fmt::format("Attacks misled {} of {} images within their radius, or had a narrow majority.",
                  found.broken, found.images));
}

void check_dropped(const std::vector<RoundRow>& rounds, Warnings& warnings) {
  int64_t dropped = 0, in_rounds = 0;
  for (const RoundRow& row : rounds) {
    dropped += row.dropped;
    in_rounds += row.dropped > 0;
  }
  if (dropped == 0) return;
  warnings.push_back(
      fmt::format("{} updates in {} of {} rounds were dropped: not finite or too large.", dropped,
                  in_rounds, rounds.size()));
}

/// Mean over the second half of the rounds, when warm-up and the first steps are over.
template <typename Field>
double late_mean(const std::vector<RoundRow>& rounds, Field field) {
  const size_t first = rounds.size() / 2;
  double sum = 0, count = 0;
  for (size_t i = first; i < rounds.size(); ++i) {
    if (!std::isfinite(field(rounds[i]))) continue;
    sum += field(rounds[i]);
    ++count;
  }
  return sum / std::max(count, 1.0);
}

/// An attack that does not attack: training then is not adversarial, whatever its name.
void check_attack(const std::vector<RoundRow>& rounds, Warnings& warnings) {
  constexpr double kFar = 0.5;     // of epsilon
  constexpr double kDrop = 0.005;  // of the true class's probability
  if (!has_attack(rounds)) return;
  using Row = const RoundRow&;
  const double mean = late_mean(rounds, [](Row row) { return row.perturbation_mean; });
  const double high = late_mean(rounds, [](Row row) { return row.perturbation_p95; });
  const double drop = late_mean(rounds, [](Row row) { return row.probability_drop; });
  if (mean < kFar && high < kFar) {
    warnings.push_back(fmt::format(
        "The attack in training reaches {:.2g} epsilon only; its steps are too small.", mean));
  } else if (mean < kFar) {
    warnings.push_back(
        "The attack in training leaves most images as they are; their gradient is zero.");
  } else if (drop < kDrop) {
    warnings.push_back(fmt::format(
        "The attack in training is vacuous: it moves images by {:.2f} epsilon, to no effect.",
        mean));
  }
}

}  // namespace

std::vector<std::string> list_warnings(const RunRecord& run) {
  Warnings warnings;
  if (run.certified()) {
    check_certificates(run.rows, warnings);
    check_contradictions(run, warnings);
  }
  check_dropped(run.rounds, warnings);
  check_attack(run.rounds, warnings);
  return warnings;
}

}  // namespace fedsmooth
