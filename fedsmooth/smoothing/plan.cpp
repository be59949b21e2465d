#include "fedsmooth/smoothing/plan.h"

#include <algorithm>

#include "fedsmooth/smoothing/statistics.h"

namespace fedsmooth {
namespace {

constexpr int64_t kFewest = 500;
constexpr double kHopeless = 0.01;  // level of the bound by which an image is given up

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
  // As if the class and its runner-up got the pilot's shares of n votes.
  const auto expect = [&](int64_t n) {
    const auto of_n = [&](int64_t count) {
      return static_cast<int64_t>(static_cast<double>(count) / static_cast<double>(pilot.n) *
                                  static_cast<double>(n));
    };
    const int64_t top = of_n(pilot.top);
    const Counts counts = {pilot.selected, n, top, std::min(of_n(pilot.runner_up), n - top)};
    return certificate_from_counts(counts, sigma_, o_.alpha, o_.radius);
  };
  const Certificate best = expect(most);
  const auto loses_little = [&](int64_t n) {
    const Certificate c = expect(n);
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
