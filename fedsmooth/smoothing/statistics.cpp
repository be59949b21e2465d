#include "fedsmooth/smoothing/statistics.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>

namespace fedsmooth {
namespace {

// Relative error allowed for Boost's long double functions. They claim some 1e-16 at these
// arguments; the bounds give up three digits to be sure.
constexpr long double kMargin = 1e-13L;

double down(double x) { return std::nextafter(x, -INFINITY); }

double round_down(long double x) {
  const auto rounded = static_cast<double>(x);
  return static_cast<long double>(rounded) > x ? down(rounded) : rounded;
}

// P[Bin(n, p) >= k], 1 <= k <= n.
long double upper_tail(int64_t k, int64_t n, double p) {
  return boost::math::ibeta(static_cast<long double>(k), static_cast<long double>(n - k + 1),
                            static_cast<long double>(p));
}

// P[N(0, 1) <= z], accurate in both tails.
long double normal_cdf(double z) {
  return boost::math::erfc(-static_cast<long double>(z) / std::sqrt(2.0L)) / 2;
}

}  // namespace

double binomial_lower_bound(int64_t k, int64_t n, double alpha) {
  TORCH_CHECK(0 <= k && k <= n && n >= 1, "binomial_lower_bound: ", k, " of ", n);
  TORCH_CHECK(alpha > 0 && alpha < 1, "binomial_lower_bound: alpha ", alpha);
  if (k == 0) return 0.0;
  const long double level = static_cast<long double>(alpha) * (1 - 2 * kMargin);
  const long double estimate =
      k == n ? std::exp(std::log(level) / static_cast<long double>(n))
             : boost::math::ibeta_inv(static_cast<long double>(k),
                                      static_cast<long double>(n - k + 1), level);
  double p = std::min(round_down(estimate), down(1.0));
  while (p > 0 && !(upper_tail(k, n, p) * (1 + kMargin) <= alpha)) p = down(p);
  return std::max(p, 0.0);
}

double binomial_upper_bound(int64_t k, int64_t n, double alpha) {
  // Failures are as binomial as successes. 1 - q rounds by at most half a unit; one step covers it.
  const double q = binomial_lower_bound(n - k, n, alpha);
  return q == 0.0 ? 1.0 : std::min(1.0, std::nextafter(1.0 - q, 2.0));
}

double normal_quantile_below(double p) {
  TORCH_CHECK(p > 0 && p < 1, "normal_quantile: p ", p);
  // From the nearer tail, so that nothing cancels; 1 - p is exact in long double for p >= 2^-11.
  const long double q = 1 - static_cast<long double>(p);
  const long double estimate =
      p < 0.5 ? -std::sqrt(2.0L) * boost::math::erfc_inv(2 * static_cast<long double>(p))
              : std::sqrt(2.0L) * boost::math::erfc_inv(2 * q);
  double z = round_down(estimate);
  // Phi(z) <= p, or for the upper half 1 - Phi(z) = Phi(-z) >= q.
  while (p < 0.5 ? !(normal_cdf(z) * (1 + kMargin) <= p) : !(normal_cdf(-z) >= q * (1 + kMargin))) {
    z = down(z);
  }
  return z;
}

double normal_quantile_above(double p) {
  // Phi^-1(p) = -Phi^-1(1 - p); a 1 - p that rounded up would give too small a result.
  double q = 1.0 - p;
  if (q == 0.0 || static_cast<long double>(q) > 1 - static_cast<long double>(p)) q = down(q);
  return -normal_quantile_below(q);
}

double multiply_down(double a, double b) {
  const double product = a * b;
  // fma gives the exact error of the rounded product.
  return product > 0 && std::fma(a, b, -product) < 0 ? down(product) : product;
}

double fair_coin_p_value(int64_t k, int64_t n) {
  TORCH_CHECK(2 * k >= n && k <= n, "fair_coin_p_value: ", k, " of ", n);
  if (k == 0) return 1.0;
  return static_cast<double>(std::min(1.0L, 2 * upper_tail(k, n, 0.5)));
}

}  // namespace fedsmooth
