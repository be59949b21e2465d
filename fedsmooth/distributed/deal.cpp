#include "fedsmooth/distributed/deal.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

namespace fedsmooth {

std::vector<std::vector<size_t>> deal(const std::vector<double>& costs, int ranks) {
  std::vector<size_t> order(costs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return costs[a] > costs[b]; });
  using Load = std::pair<double, int>;  // and whose it is: the lowest rank on ties
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (int r = 0; r < ranks; ++r) loads.emplace(0.0, r);
  std::vector<std::vector<size_t>> dealt(ranks);
  for (const size_t i : order) {
    const auto [load, rank] = loads.top();
    loads.pop();
    dealt[rank].push_back(i);
    loads.emplace(load + costs[i], rank);
  }
  for (std::vector<size_t>& own : dealt) std::sort(own.begin(), own.end());
  return dealt;
}

}  // namespace fedsmooth
