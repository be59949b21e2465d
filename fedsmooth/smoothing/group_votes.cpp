#include "fedsmooth/smoothing/group_votes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fedsmooth/base/check.h"
#include "fedsmooth/smoothing/statistics.h"

namespace fedsmooth {

int64_t vote_of(const float* logits, int64_t classes) {
  int64_t best = 0;
  bool finite = true;
  for (int64_t c = 0; c < classes; ++c) {
    finite = finite && std::isfinite(logits[c]);
    if (logits[c] > logits[best]) best = c;
  }
  return finite ? best : -1;
}

int64_t majority(const Votes& votes) {
  const auto top = std::max_element(votes.begin(), votes.end());
  return *top > 0 ? top - votes.begin() : -1;
}

int64_t gap_of(const Votes& votes, int64_t c) {
  int64_t others = 0;
  bool voted = false;
  for (int64_t k = 0; k < std::ssize(votes); ++k) {
    voted = voted || votes[k] > 0;
    if (k != c) others = std::max(others, votes[k] + (k < c ? 1 : 0));
  }
  return voted ? votes[c] - others : -1;
}

int64_t copies_safe_from(const Gaps& gaps, int64_t malicious) {
  check(gaps.size() >= 2 && malicious >= 0, "copies_safe_from: {} gaps, {} malicious", gaps.size(),
        malicious);
  const int64_t groups = groups_of(gaps);
  const int64_t first = malicious > groups / 2 ? groups + 1 : 2 * malicious;
  return std::accumulate(gaps.begin() + first, gaps.end() - 1, int64_t{0});
}

void VotesAndGaps::add_copy(const float* logits, int64_t groups) {
  const auto classes = std::ssize(votes);
  if (groups == 0) {
    const int64_t c = vote_of(logits, classes);
    if (c >= 0) ++votes[c];
    return;
  }
  Votes of_groups(classes, 0);
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t c = vote_of(logits + g * classes, classes);
    if (c >= 0) ++of_groups[c];
  }
  const int64_t answer = majority(of_groups);
  if (answer >= 0) ++votes[answer];
  if (gaps_of < 0) return;
  const int64_t gap = gap_of(of_groups, gaps_of);
  ++(gap < 0 ? gaps.back() : gaps[gap]);
}

void VotesAndGaps::add(const VotesAndGaps& other) {
  for (size_t c = 0; c < votes.size(); ++c) votes[c] += other.votes[c];
  for (size_t j = 0; j < gaps.size(); ++j) gaps[j] += other.gaps[j];
}

std::optional<int64_t> most_malicious(const Gaps& gaps, double radius, double sigma, double alpha,
                                      const NoiseLaw& law) {
  const int64_t n = std::accumulate(gaps.begin(), gaps.end(), int64_t{0});
  std::optional<int64_t> most;
  for (int64_t m = 0; 2 * m <= groups_of(gaps); ++m) {
    const double p_lower = binomial_lower_bound(copies_safe_from(gaps, m), n, alpha);
    if (!(p_lower >= 0.5 && law.radius(sigma, p_lower) >= radius)) break;
    most = m;
  }
  return most;
}

double level_of_each(double alpha, int64_t malicious) {
  const auto claims = static_cast<long double>(malicious) + 1;
  return round_down(static_cast<long double>(alpha) / claims);
}

}  // namespace fedsmooth
