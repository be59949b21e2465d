// Votes of G networks f_1, ..., f_G on one noisy copy z:
//
//     v_c(z)   = #{g : f_g(z) = c}
//     H(z)     = argmax_c v_c(z), the lowest class on ties
//     gap_c(z) = v_c(z) - max over c' != c of (v_c'(z) + [c' < c])
//
// H(z) = c exactly if gap_c(z) >= 0. Replacing one network moves v_c by at most 1 and the maximum
// by at most 1, so replacing m moves gap_c by at most 2 m. Hence if p_m = P[gap_c(x + e) >= 2 m] is
// above 1/2, c stays the smoothed answer within sigma Phi^-1(p_m) of x, whatever m of the networks
// are replaced by; docs/method.md has the theorem.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fedsmooth/smoothing/noise_law.h"

namespace fedsmooth {

/// Number of votes for each class. A copy whose logits are not all finite votes for nobody.
using Votes = std::vector<int64_t>;

/// Histogram of one class's gaps, of G + 2 entries: entry j counts the copies with gap j, for j = 0
/// ... G, and the last entry those with a gap below 0, to which copies without any vote belong.
using Gaps = std::vector<int64_t>;

inline constexpr int64_t kMaxGroups = 10'000;

/// Returns G, the number of networks whose votes `gaps` counted.
inline int64_t groups_of(const Gaps& gaps) { return static_cast<int64_t>(gaps.size()) - 2; }

/// Returns the class with the largest of a copy's logits, the lowest one on ties; -1 if a logit is
/// not finite, because a broken evaluation must not count in favour of a class.
int64_t vote_of(const float* logits, int64_t classes);

/// Returns the class with the most votes, the lowest one on ties; -1 if nobody voted.
int64_t majority(const Votes& votes);

/// Returns gap_c for the votes v of one copy; a negative number if nobody voted.
int64_t gap_of(const Votes& votes, int64_t c);

/// Returns N_m, the number of copies whose gap is at least 2 m: no m networks can change their
/// answer.
int64_t copies_safe_from(const Gaps& gaps, int64_t malicious);

/// The votes of one request's copies. With groups, `votes` are those of H.
struct VotesAndGaps {
  Votes votes;
  int64_t gaps_of = -1;  // class whose gaps are counted; -1: none
  Gaps gaps = {};        // empty: they are not counted

  /// Adds a copy by its logits [max(1, groups), classes]; groups = 0: f is one network.
  void add_copy(const float* logits, int64_t groups);
  void add(const VotesAndGaps& other);
};

/// Returns the largest m for which radius r is certified against m replaced networks; nothing if it
/// is not certified for m = 0. Every claim m' <= m holds, all of them together with probability 1 -
/// alpha: the nulls p_m <= Phi(r / sigma) are nested, and m = 0, 1, 2, ... are tested in this order
/// until one fails. r has to be fixed before the votes are seen.
std::optional<int64_t> most_malicious(const Gaps& gaps, double radius, double sigma, double alpha,
                                      const NoiseLaw& law);

/// Returns the level at which each of m = 0 ... `malicious` is claimed, if all are claimed at once
/// at level alpha: alpha / (malicious + 1), rounded down.
double level_of_each(double alpha, int64_t malicious);

}  // namespace fedsmooth
