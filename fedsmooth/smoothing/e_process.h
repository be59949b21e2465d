// Evidence against "a vote is for this class with probability at most p" that may be looked at
// after every vote. After N votes, A of them for the class, the e-value is
//
//     E = integral_p^1 t^A (1 - t)^(N - A) w(t) dt / (p^A (1 - p)^(N - A)),
//
// a mixture of likelihoods over t > p with w the law Beta(1/2, 1/2) cut to t > p, divided by the
// likelihood at p. If the true probability is at most p, E is a supermartingale that starts at 1,
// so that it ever reaches 1 / alpha with probability at most alpha (Ville), whenever one looks or
// stops. Evidence against "at least p" is the same with both outcomes exchanged.
#pragma once

#include <cstdint>

namespace fedsmooth {

/// ln E for `successes` of n against a probability of success of at most p, never above the true
/// value and within 1e-9 of it for |ln E| <= 1000. 0 < p < 1; q is 1 - p, which must be exact;
/// n <= 2^32. Minus infinity where E is too small for a number.
double log_e_value(int64_t successes, int64_t n, double p, double q);

/// The least number of successes of n with E >= 1 / level; n + 1 if there is none. E grows with the
/// successes.
int64_t successes_against(int64_t n, double p, double q, double level);

}  // namespace fedsmooth
