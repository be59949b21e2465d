#include "fedsmooth/smoothing/e_process.h"

#include <boost/math/special_functions/beta.hpp>
#include <cmath>

#include "fedsmooth/base/check.h"
#include "fedsmooth/smoothing/statistics.h"

namespace fedsmooth {
namespace {

constexpr long double kHalfLogTwoPi = 0.918938533204672741780329736405617640L;
constexpr long double kUnit = 0x1p-62L;  // relative error of a logarithm or product, generously

// ln Gamma(x) - ((x - 1/2) ln x - x + ln(2 pi) / 2), for x >= 1/2.
long double stirling_error(long double x) {
  if (x < 16) return std::lgamma(x) - ((x - 0.5L) * std::log(x) - x + kHalfLogTwoPi);
  const long double y = 1 / (x * x);
  // The next term is below 1e-19 here.
  constexpr long double kSeries[] = {1 / 12.0L,    -1 / 360.0L,       1 / 1260.0L,
                                     -1 / 1680.0L, 1 / 1188.0L,       -691 / 360'360.0L,
                                     1 / 156.0L,   -3617 / 122'400.0L};
  long double sum = 0;
  for (int i = 7; i >= 0; --i) sum = sum * y + kSeries[i];
  return sum / x;
}

// k ln((k + 1/2) / (m p)): nothing is lost where the fraction is near 1.
long double log_ratio(int64_t k, long double m, double p) {
  const long double excess = std::fma(-m, static_cast<long double>(p), k + 0.5L);
  return static_cast<long double>(k) * std::log1p(excess / (m * p));
}

}  // namespace

double log_e_value(int64_t successes, int64_t n, double p, double q) {
  check(0 <= successes && successes <= n && n <= int64_t{1} << 32, "log_e_value: {} of {}",
        successes, n);
  check(p > 0 && q > 0 && static_cast<long double>(p) + q == 1, "log_e_value: p {}, q {}", p, q);
  const long double a = static_cast<long double>(successes) + 0.5L;
  const long double b = static_cast<long double>(n - successes) + 0.5L;
  const long double m = a + b;
  // By Stirling's formula ln B(a, b) - A ln p - (N - A) ln q, with everything large cancelled.
  const long double first = log_ratio(successes, m, p);
  const long double second = log_ratio(n - successes, m, q);
  const long double likelihoods = first + second - std::log(m) / 2 + kHalfLogTwoPi +
                                  stirling_error(a) + stirling_error(b) - stirling_error(m);
  // The part of Beta(a, b), and of Beta(1/2, 1/2), above p; the latter is 2 / pi asin(sqrt(q)).
  const long double above = boost::math::ibetac(a, b, static_cast<long double>(p));
  const long double log_e = likelihoods + std::log(above) -
                            std::log(2 * std::asin(std::sqrt(static_cast<long double>(q))));
  if (!(above > 0)) return -INFINITY;
  const long double error =
      kUnit * (std::fabs(first) + std::fabs(second) + 100) + 2 * beta_error(n);
  return round_down(log_e - error);
}

int64_t successes_against(int64_t n, double p, double q, double level) {
  check(level > 0 && level < 1, "successes_against: level {}", level);
  const double needed = std::nextafter(-std::log(level), INFINITY);
  const auto enough = [&](int64_t k) { return log_e_value(k, n, p, q) >= needed; };
  int64_t low = -1, high = n + 1;  // not enough; enough, or none is
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace fedsmooth
