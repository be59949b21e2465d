#include "fedsmooth/jobs/certification/plausibility.h"

#include <algorithm>

#include "fedsmooth/base/draws.h"
#include "fedsmooth/smoothing/statistics.h"

namespace fedsmooth::jobs {

std::vector<CertificateRow> choose_rows(const std::vector<CertificateRow>& rows, int64_t count,
                                        uint64_t seed) {
  std::vector<const CertificateRow*> with_votes;
  for (const CertificateRow& row : rows) {
    if (row.estimated()) with_votes.push_back(&row);
  }
  const auto all = std::ssize(with_votes);
  Draws draws(Stream{make_key(seed, Purpose::kProbe)});
  std::vector<int64_t> chosen = draws.choose(std::min(count, all), all);
  std::sort(chosen.begin(), chosen.end());
  std::vector<CertificateRow> some;
  for (const int64_t i : chosen) some.push_back(*with_votes[i]);
  return some;
}

double row_p_value(const CertificateRow& row, int64_t top, int64_t n) {
  const Certificate& c = row.certificate;
  if (row.rule != VoteRule::kRadii) return fisher_p_value(c.counts.top, c.counts.n, top, n);
  if (row.abstained()) return 1.0;
  return std::min(1.0, binomial_p_value(top, n, c.p_lower) + row.alpha);
}

double table_p_value(std::vector<double> of_rows, bool stopped_early) {
  std::sort(of_rows.begin(), of_rows.end());
  const auto k = std::ssize(of_rows);
  double smallest = stopped_early ? 1 : of_rows.front();
  for (int64_t s = 1; stopped_early && s <= k && of_rows[s - 1] < 1; ++s) {
    smallest = std::min(smallest, 1 - binomial_p_value(s - 1, k, of_rows[s - 1]));
  }
  return std::min(1.0, smallest * static_cast<double>(k));
}

}  // namespace fedsmooth::jobs
