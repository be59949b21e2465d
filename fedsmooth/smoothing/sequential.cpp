#include "fedsmooth/smoothing/sequential.h"

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/smoothing/e_process.h"
#include "fedsmooth/smoothing/statistics.h"

namespace fedsmooth {
namespace {

constexpr int64_t kFirstLook = 100;
// Of ln E, when a table is read: another version of Boost may differ in a last digit.
constexpr double kTolerance = 1e-9;

bool is_enough(const Latch& at, double p, double alpha, double tolerance = 0) {
  return p < 1 && log_e_value(at.top, at.n, p, 1 - p) >= -std::log(alpha) - tolerance;
}

// Whether a sequence of votes that was at `earlier` can come to `later`.
bool can_follow(const Latch& earlier, const Latch& later) {
  return earlier.top <= later.top && earlier.n - earlier.top <= later.n - later.top;
}

}  // namespace

std::vector<double> ladder_of(std::vector<double> radii) {
  for (const double r : radii) {
    if (!(r >= 0) || !std::isfinite(r)) throw Error("radii: {} must not be negative", r);
  }
  radii.push_back(0.0);
  std::sort(radii.begin(), radii.end());
  radii.erase(std::unique(radii.begin(), radii.end()), radii.end());
  if (radii.size() > kMaxRadii) {
    throw Error("radii: {} are too many; at most {} with 0", radii.size(), kMaxRadii);
  }
  return radii;
}

Certificate certificate_from_latches(const Counts& counts, std::vector<Latch> latches,
                                     const std::vector<double>& ladder, double sigma,
                                     const NoiseLaw& law) {
  check(latches.size() <= ladder.size(), "certificate_from_latches: {} latches for {} radii",
        latches.size(), ladder.size());
  Certificate c{counts};
  if (counts.n == 0) {
    c.predict = counts.selected;
    return c;
  }
  c.latches = std::move(latches);
  if (c.latches.empty()) return c;
  c.predict = counts.selected;
  c.radius = ladder[c.latches.size() - 1];
  c.p_lower = law.needed_probability(sigma, c.radius);
  return c;
}

bool latches_hold(const Counts& counts, const std::vector<Latch>& latches,
                  const std::vector<double>& ladder, double sigma, double alpha,
                  const NoiseLaw& law) {
  if (latches.size() > ladder.size()) return false;
  for (size_t i = 0; i < latches.size(); ++i) {
    const Latch& at = latches[i];
    const bool last = i + 1 == latches.size();
    const Latch& next = last ? Latch{counts.top, counts.n} : latches[i + 1];
    if (at.n < 1 || at.top < 0 || at.top > at.n || !can_follow(at, next)) return false;
    // Of those that were latched together the largest needs the most.
    const bool together = !last && next.top == at.top && next.n == at.n;
    if (!together && !is_enough(at, law.needed_probability(sigma, ladder[i]), alpha, kTolerance))
      return false;
  }
  return true;
}

std::vector<Latch> latches_at(const Counts& counts, const std::vector<Latch>& latches,
                              const std::vector<double>& ladder, double sigma, double alpha,
                              const NoiseLaw& law) {
  const Latch now = {counts.top, counts.n};
  std::vector<Latch> kept;
  for (size_t i = 0; i < ladder.size(); ++i) {
    const double p = law.needed_probability(sigma, ladder[i]);
    // Once one of them needed the last counts, so do the larger ones.
    const bool has_own =
        i < latches.size() && (kept.empty() || can_follow(kept.back(), latches[i]));
    if (has_own && is_enough(latches[i], p, alpha)) {
      kept.push_back(latches[i]);
    } else if (now.n > 0 && is_enough(now, p, alpha)) {
      kept.push_back(now);
    } else {
      break;
    }
  }
  return kept;
}

int64_t next_look(int64_t n, int64_t cap) {
  return std::min(cap, n == 0 ? kFirstLook : n + (n + 4) / 5);
}

RadiiTest::RadiiTest(std::vector<double> ladder, double sigma, double alpha, double beta,
                     const NoiseLaw& law)
    : ladder_(std::move(ladder)), alpha_(alpha), beta_(beta) {
  for (const double radius : ladder_) needed_.push_back(law.needed_probability(sigma, radius));
}

const RadiiTest::Limits& RadiiTest::limits(int64_t n, size_t radius) {
  const auto [found, is_new] = limits_.try_emplace({n, radius});
  if (is_new) {
    const double p = needed_[radius], q = 1 - p;
    check(q > 0, "RadiiTest: radius {} cannot be certified", ladder_[radius]);
    found->second = {successes_against(n, p, q, alpha_), n - successes_against(n, q, p, beta_)};
  }
  return found->second;
}

bool RadiiTest::look(int64_t top, int64_t n, std::vector<Latch>& latches) {
  while (latches.size() < ladder_.size()) {
    const Limits& limit = limits(n, latches.size());
    if (top < limit.latch) return top <= limit.give_up;
    latches.push_back({top, n});
  }
  return true;
}

}  // namespace fedsmooth
