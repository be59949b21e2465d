// Evidence against "a vote is for this class with probability at most p" that may be evaluated
// after every vote. After N votes, A of them for the class, the e-value is
//
//     E = integral_p^1 t^A (1 - t)^(N - A) w(t) dt / (p^A (1 - p)^(N - A)),
//
// a mixture of likelihoods over t > p with w the law Beta(1/2, 1/2) cut to t > p, divided by the
// likelihood at p. If the true probability is at most p, E is a supermartingale that starts at 1,
// so it ever reaches 1 / alpha with probability at most alpha (Ville), whenever it is evaluated or
// the votes are stopped. Evidence against "at least p" is computed with both outcomes exchanged.
#pragma once

#include <cstdint>

namespace fedsmooth {

/// Returns ln E for `successes` of n against a probability of success of at most p. The result is
/// never above the true value and within 1e-9 of it for |ln E| <= 1000; minus infinity where E
/// underflows. 0 < p < 1; q must be exactly 1 - p; n <= 2^32.
double log_e_value(int64_t successes, int64_t n, double p, double q);

/// Returns the least number of successes of n with E >= 1 / level, or n + 1 if there is none. E
/// grows with the successes.
int64_t successes_against(int64_t n, double p, double q, double level);

}  // namespace fedsmooth
