#include "fedsmooth/smoothing/against.h"

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/smoothing/statistics.h"

namespace fedsmooth {
namespace {

int64_t most_in(const ClassSet& omega, const Tally& votes) {
  int64_t most = 0;
  for (const ClassVotes& of : votes) {
    if (omega.contains(of.label)) most = std::max(most, of.votes);
  }
  return most;
}

// What the votes say of A and of the likeliest class that it is held against.
struct Bounds {
  double lower = 0, upper = 1;
};

Bounds bounds_of(const Counts& counts, int64_t most, double alpha) {
  Bounds b;
  b.lower = binomial_lower_bound(counts.top, counts.n, alpha / 2);
  b.upper =
      std::min(binomial_upper_bound(most, counts.n, alpha / 2), std::nextafter(1.0 - b.lower, 2.0));
  return b;
}

double radius_of(const Bounds& b, double sigma, const NoiseLaw& law) {
  return b.lower > b.upper ? law.radius_between(sigma, b.lower, b.upper) : 0.0;
}

// Whether these counts can claim anything against these classes.
bool can_claim(const Counts& counts, const ClassSet& omega, const NoiseLaw& law) {
  if (law.radius_between == nullptr) {
    throw Error("noise={}: has no radius against given classes", law.name);
  }
  check(knows_all_votes(counts), "radius_against: only two classes' votes are known");
  return counts.n > 0 && !omega.contains(counts.selected);
}

}  // namespace

bool ClassSet::contains(int64_t label) const {
  return std::binary_search(listed.begin(), listed.end(), label) != others;
}

bool knows_all_votes(const Counts& counts) {
  return !counts.votes.empty() || (counts.top == 0 && counts.runner_up == 0);
}

double radius_above(const Counts& counts, const ClassSet& omega, double sigma, double alpha,
                    const NoiseLaw& law) {
  if (!can_claim(counts, omega, law)) return 0;
  return radius_of(bounds_of(counts, most_in(omega, counts.votes), alpha), sigma, law);
}

double radius_against(const Counts& counts, const ClassSet& omega, int64_t classes, double sigma,
                      double alpha, const NoiseLaw& law) {
  if (!can_claim(counts, omega, law)) return 0;
  // R' needs a class outside Omega that has 1 / (K + 1), where it could be "none" that has it: so
  // copies that vote for nobody are bounded like a class of Omega. One U serves R and R', so that
  // there are two bounds to fail, not three.
  const int64_t for_nobody = counts.n - total_votes(counts.votes);
  const Bounds b = bounds_of(counts, std::max(most_in(omega, counts.votes), for_nobody), alpha);
  const double above = radius_of(b, sigma, law);
  if (classes < 1 || law.radius_below == nullptr) return above;
  const double limit = std::nextafter(1.0 / static_cast<double>(classes + 1), 0.0);
  return b.upper < limit ? std::max(above, law.radius_below(sigma, b.upper, limit)) : above;
}

ClassSet beyond_top(const Counts& counts, int64_t k, int64_t classes) {
  if (k < 1 || k >= classes) {
    throw Error("top={}: must be from 1 to {}, as there are {} classes", k, classes - 1, classes);
  }
  Tally others;
  for (const ClassVotes& of : counts.selection) {
    if (of.label != counts.selected) others.push_back(of);
  }
  std::stable_sort(others.begin(), others.end(),
                   [](const ClassVotes& a, const ClassVotes& b) { return a.votes > b.votes; });
  if (std::ssize(others) > k - 1) others.resize(k - 1);
  ClassSet beyond{{counts.selected}, true};
  for (const ClassVotes& of : others) beyond.listed.push_back(of.label);
  std::sort(beyond.listed.begin(), beyond.listed.end());
  // Classes without a vote are tied.
  for (int64_t c = 0; std::ssize(beyond.listed) < k; ++c) {
    const auto at = std::lower_bound(beyond.listed.begin(), beyond.listed.end(), c);
    if (at == beyond.listed.end() || *at != c) beyond.listed.insert(at, c);
  }
  return beyond;
}

}  // namespace fedsmooth
