#include "fedsmooth/base/draws.h"

#include <cmath>
#include <numeric>
#include <unordered_map>

#include "fedsmooth/base/check.h"

namespace fedsmooth {

uint32_t Draws::word() {
  if (used_ == std::size(words_)) {
    fill_words(stream_, sample_++, words_, std::size(words_));
    used_ = 0;
  }
  return words_[used_++];
}

int64_t Draws::below(int64_t n) {
  check(n >= 1 && n <= int64_t{1} << 32, "Draws::below: {}", n);
  // Words from the incomplete last multiple of n on would favour small numbers.
  const uint64_t limit = (uint64_t{1} << 32) / n * n;
  uint64_t drawn = word();
  while (drawn >= limit) drawn = word();
  return static_cast<int64_t>(drawn % n);
}

double Draws::uniform() { return (word() + 0.5) * 0x1p-32; }

double Draws::normal() {
  const double length = std::sqrt(-2 * std::log(uniform()));
  return length * std::cos(2 * M_PI * uniform());
}

// Marsaglia and Tsang, ACM TOMS 2000; shapes below one by Gamma(a) = Gamma(a + 1) U^(1/a).
double Draws::gamma(double shape) {
  if (shape < 1) {
    const double larger = gamma(shape + 1);
    return larger * std::pow(uniform(), 1 / shape);
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = normal(), v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    if (std::log(uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

// Fisher and Yates. Where few are chosen, the list is never written out: only the swapped indices
// are remembered.
std::vector<int64_t> Draws::choose(int64_t count, int64_t n) {
  check(0 <= count && count <= n, "Draws::choose: {} of {}", count, n);
  std::vector<int64_t> chosen;
  if (count > n / 4) {
    chosen.resize(n);
    std::iota(chosen.begin(), chosen.end(), int64_t{0});
    for (int64_t i = 0; i < count; ++i) std::swap(chosen[i], chosen[i + below(n - i)]);
    chosen.resize(count);
    return chosen;
  }
  std::unordered_map<int64_t, int64_t> moved;
  moved.reserve(2 * count);
  const auto at = [&](int64_t index) {
    const auto found = moved.find(index);
    return found == moved.end() ? index : found->second;
  };
  chosen.reserve(count);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = i + below(n - i);
    chosen.push_back(at(index));
    moved[index] = at(i);
  }
  return chosen;
}

}  // namespace fedsmooth
