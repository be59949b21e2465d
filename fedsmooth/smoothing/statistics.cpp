#include "fedsmooth/smoothing/statistics.h"

#include <algorithm>
#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>

#include "fedsmooth/base/check.h"

namespace fedsmooth {
namespace {

// Relative error allowed for Boost's long double functions. That of the error function is some
// 1e-16; that of the binomial tail was 1.4e-14 at n = 10^6, and grows with n to 2e-12 at 10^8.
constexpr long double kMargin = 1e-13L;

double down(double x) { return std::nextafter(x, -INFINITY); }

// P[Bin(n, p) >= k], 1 <= k <= n.
long double upper_tail(int64_t k, int64_t n, double p) {
  return boost::math::ibeta(static_cast<long double>(k), static_cast<long double>(n - k + 1),
                            static_cast<long double>(p));
}

// P[N(0, 1) <= z], accurate in both tails.
long double normal_cdf(double z) {
  return boost::math::erfc(-static_cast<long double>(z) / std::sqrt(2.0L)) / 2;
}

enum class Side { kBelow, kAbove };

double quantile(double p, Side side) {
  check(p > 0 && p < 1, "normal quantile: p {}", p);
  // By the nearer tail, so that nothing cancels: z = -t for p >= 1/2, where P[N > z] = Phi(t).
  const bool upper = p >= 0.5;
  const long double tail = upper ? 1 - static_cast<long double>(p) : static_cast<long double>(p);
  // A z below the quantile is a t below it in the lower tail and above it in the upper one.
  const bool t_below = (side == Side::kBelow) != upper;
  const long double aim = t_below ? tail * (1 - 2 * kMargin) : tail * (1 + 2 * kMargin);
  auto t = static_cast<double>(-std::sqrt(2.0L) * boost::math::erfc_inv(2 * aim));
  const auto holds = [&] {
    return t_below ? normal_cdf(t) * (1 + kMargin) <= tail : normal_cdf(t) >= tail * (1 + kMargin);
  };
  while (!holds()) t = std::nextafter(t, t_below ? -INFINITY : INFINITY);
  return upper ? -t : t;
}

// n over k.
long double log_choose(int64_t n, int64_t k) {
  const auto log_factorial = [](int64_t m) { return std::lgamma(static_cast<long double>(m) + 1); };
  return log_factorial(n) - log_factorial(k) - log_factorial(n - k);
}

// Of `all` successes in n + other_n trials, the chance that k are among the n; and, one term after
// another, that of k, k + step, k + 2 step, ..., which must lead away from the mode.
struct Hypergeometric {
  int64_t n, other_n, all;

  int64_t least() const { return std::max<int64_t>(0, all - other_n); }
  int64_t most() const { return std::min(n, all); }

  long double at(int64_t k) const {
    return std::exp(log_choose(n, k) + log_choose(other_n, all - k) - log_choose(n + other_n, all));
  }

  // at(k + 1) / at(k)
  long double growth(int64_t k) const {
    const auto real = [](int64_t m) { return static_cast<long double>(m); };
    return real(n - k) / real(k + 1) * (real(all - k) / real(other_n - all + k + 1));
  }

  long double tail(int64_t k, int step) const {
    if (k < least() || k > most()) return 0;
    long double term = at(k), sum = term;
    while (k + step >= least() && k + step <= most() && term > sum * 1e-22L) {
      term *= step > 0 ? growth(k) : 1 / growth(k - 1);
      sum += term;
      k += step;
    }
    return sum;
  }
};

}  // namespace

double round_down(long double x) {
  const auto rounded = static_cast<double>(x);
  return static_cast<long double>(rounded) > x ? down(rounded) : rounded;
}

long double beta_error(int64_t n) {
  return std::max(kMargin, 1e-19L * static_cast<long double>(n));
}

double binomial_lower_bound(int64_t k, int64_t n, double alpha) {
  check(0 <= k && k <= n && n >= 1, "binomial_lower_bound: {} of {}", k, n);
  check(alpha > 0 && alpha < 1, "binomial_lower_bound: alpha {}", alpha);
  if (k == 0) return 0.0;
  const long double margin = beta_error(n);
  const long double level = static_cast<long double>(alpha) * (1 - 2 * margin);
  const long double estimate =
      k == n ? std::exp(std::log(level) / static_cast<long double>(n))
             : boost::math::ibeta_inv(static_cast<long double>(k),
                                      static_cast<long double>(n - k + 1), level);
  double p = std::min(round_down(estimate), down(1.0));
  while (p > 0 && !(upper_tail(k, n, p) * (1 + margin) <= alpha)) p = down(p);
  return std::max(p, 0.0);
}

double binomial_upper_bound(int64_t k, int64_t n, double alpha) {
  // Failures are as binomial as successes. 1 - q rounds by at most half a unit; one step covers it.
  const double q = binomial_lower_bound(n - k, n, alpha);
  return q == 0.0 ? 1.0 : std::min(1.0, std::nextafter(1.0 - q, 2.0));
}

double normal_quantile_below(double p) { return quantile(p, Side::kBelow); }

double normal_quantile_above(double p) { return quantile(p, Side::kAbove); }

double normal_cdf_above(double z) {
  check(z >= 0, "normal_cdf_above: z {}", z);
  if (z == 0) return 0.5;
  // 1 - the other tail, which is small and exact; the subtraction rounds by less than kMargin.
  const long double tail = normal_cdf(-z) * (1 - kMargin);
  return std::min(1.0, std::nextafter(static_cast<double>(1 - tail), 2.0));
}

double multiply_down(double a, double b) {
  const double product = a * b;
  // fma gives the exact error of the rounded product.
  return product > 0 && std::fma(a, b, -product) < 0 ? down(product) : product;
}

double fair_coin_p_value(int64_t k, int64_t n) {
  check(2 * k >= n && k <= n, "fair_coin_p_value: {} of {}", k, n);
  if (k == 0) return 1.0;
  return static_cast<double>(std::min(1.0L, 2 * upper_tail(k, n, 0.5)));
}

double binomial_p_value(int64_t k, int64_t n, double p) {
  check(0 <= k && k <= n && p > 0 && p < 1, "binomial_p_value: {} of {}, p {}", k, n, p);
  if (k == n) return 1.0;
  return static_cast<double>(boost::math::ibetac(static_cast<long double>(k + 1),
                                                 static_cast<long double>(n - k),
                                                 static_cast<long double>(p)));
}

double fisher_p_value(int64_t k, int64_t n, int64_t other_k, int64_t other_n) {
  check(0 <= k && k <= n && 0 <= other_k && other_k <= other_n,
        "fisher_p_value: {} of {}, {} of {}", k, n, other_k, other_n);
  const Hypergeometric chance{n, other_n, k + other_k};
  // By the tail that leads away from the mode: the other's first term may be too small to begin
  // with.
  const bool above = static_cast<long double>(k) * static_cast<long double>(n + other_n) >
                     static_cast<long double>(n) * static_cast<long double>(k + other_k);
  const long double p = above ? chance.tail(k, 1) : 1 - chance.tail(k - 1, -1);
  return static_cast<double>(std::clamp(p, 0.0L, 1.0L));
}

}  // namespace fedsmooth
