// The functions that turn votes into a radius, rounded so that they never overstate it:
// Clopper-Pearson bounds of a binomial probability and the normal quantile. Each is computed in
// long double, rounded in the safe direction, tested against its defining inequality, and moved in
// the safe direction until the inequality holds with a margin for the error of that test.
#pragma once

#include <cstdint>

namespace fedsmooth {

/// Returns whether alpha may be the failure probability of a certificate. Below 1e-50, which no
/// experiment needs, Boost's inverse of the beta function does not converge for some counts.
constexpr bool is_level(double alpha) { return alpha >= 1e-50 && alpha < 1; }
/// The end of an error message about an alpha that is_level() refuses.
inline constexpr const char* kLevels = "must be at least 1e-50 and below 1";

/// Returns a p with P[Bin(n, p) >= k] <= alpha, within 1e-12 of the largest one: a lower confidence
/// bound, which exceeds the true probability with probability at most alpha.
double binomial_lower_bound(int64_t k, int64_t n, double alpha);

/// Returns a p with P[Bin(n, p) <= k] <= alpha, within 1e-12 of the smallest one.
double binomial_upper_bound(int64_t k, int64_t n, double alpha);

/// Return a z with Phi(z) <= p (below) or Phi(z) >= p (above), within 1e-12 of the quantile.
/// 0 < p < 1.
double normal_quantile_below(double p);
double normal_quantile_above(double p);

/// Returns a p with Phi(z) <= p, within 1e-12 of Phi(z) and at most 1; exactly 1/2 for z = 0.
/// z >= 0.
double normal_cdf_above(double z);

/// Returns the product of two doubles >= 0, rounded down.
double multiply_down(double a, double b);

/// Returns the largest double that is at most x.
double round_down(long double x);

/// Returns the relative error that is allowed for Boost's incomplete beta function in long double
/// where its arguments add up to about n.
long double beta_error(int64_t n);

/// Returns min(1, 2 P[Bin(n, 1/2) >= k]), the two-sided p-value of k against a fair coin, for
/// k >= n / 2.
double fair_coin_p_value(int64_t k, int64_t n);

/// Returns P[Bin(n, p) <= k], a p-value against a probability of success of at least p. 0 < p < 1.
double binomial_p_value(int64_t k, int64_t n, double p);

/// Returns the p-value of Fisher's exact test of whether k of n is too many compared with other_k
/// of other_n: the probability, if both have one probability of success and given k + other_k
/// successes in all, that at least k of them are among the n. It is at most t with probability at
/// most t, for every t.
double fisher_p_value(int64_t k, int64_t n, int64_t other_k, int64_t other_n);

}  // namespace fedsmooth
