#include "fedsmooth/smoothing/plan.h"

#include <algorithm>
#include <cmath>

#include "fedsmooth/smoothing/statistics.h"

namespace fedsmooth {
namespace {

constexpr int64_t kFewest = 500;
constexpr double kHopeless = 0.01;  // level of the bound by which an image is given up
// Standard deviations below its expectation: nine counts of ten are above.
constexpr double kUnlucky = 1.2816;

}  // namespace

int64_t VotePlanner::votes_for(const Counts& pilot) {
  const auto [found, is_new] = planned_.try_emplace({pilot.top, pilot.runner_up});
  if (is_new) found->second = plan(pilot);
  return found->second;
}

int64_t VotePlanner::plan(const Counts& pilot) const {
  const int64_t most = o_.n, fewest = std::min(kFewest, most);
  if (o_.radius == RadiusKind::kOneSided &&
      binomial_upper_bound(pilot.top, pilot.n, kHopeless) < 0.5) {
    return fewest;
  }
  // What n votes certify if the class and its runner-up have the pilot's shares, and the votes
  // stray from them by so many standard deviations.
  const auto expect = [&](int64_t n, double deviations) {
    const auto of_n = [&](int64_t count, double deviations) {
      const double share = static_cast<double>(count) / static_cast<double>(pilot.n);
      const auto votes = static_cast<double>(n);
      const double found = votes * share + deviations * std::sqrt(votes * share * (1 - share));
      return std::clamp<int64_t>(static_cast<int64_t>(found), 0, n);
    };
    const int64_t top = of_n(pilot.top, -deviations);
    const int64_t runner_up = std::min(of_n(pilot.runner_up, deviations), n - top);
    return certificate_from_counts({pilot.selected, n, top, runner_up}, sigma_, o_.alpha, o_.radius,
                                   law_);
  };
  const Certificate best = expect(most, 0);
  const auto loses_little = [&](int64_t n) {
    const Certificate c = expect(n, kUnlucky);
    const bool answers = c.predict != kAbstain || best.predict == kAbstain;
    return answers && c.radius >= best.radius - o_.plan;
  };
  std::vector<int64_t> numbers;
  for (int64_t n = fewest; n < most; n *= 2) numbers.push_back(n);
  // More votes lose less.
  const auto enough = std::partition_point(numbers.begin(), numbers.end(),
                                           [&](int64_t n) { return !loses_little(n); });
  return enough == numbers.end() ? most : *enough;
}

}  // namespace fedsmooth
