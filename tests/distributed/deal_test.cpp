#include "fedsmooth/distributed/deal.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace fedsmooth {
namespace {

using Indices = std::vector<std::vector<size_t>>;

TEST(DealTest, GivesEachOnceAndEqualOnesEvenly) {
  EXPECT_EQ(deal({1, 1, 1, 1, 1}, 2), (Indices{{0, 2, 4}, {1, 3}}));
  EXPECT_EQ(deal({1, 1}, 3), (Indices{{0}, {1}, {}}));
  EXPECT_EQ(deal({}, 2), (Indices{{}, {}}));
}

TEST(DealTest, BalancesUnequalOnes) {
  EXPECT_EQ(deal({1, 2, 3, 4, 10}, 2), (Indices{{4}, {0, 1, 2, 3}}));
  std::vector<double> costs;
  for (int i = 0; i < 100; ++i) costs.push_back(1 + i * i % 37);
  double total = 0, busiest = 0;
  for (const double cost : costs) total += cost;
  for (const auto& own : deal(costs, 7)) {
    double load = 0;
    for (const size_t i : own) load += costs[i];
    busiest = std::max(busiest, load);
  }
  EXPECT_LT(busiest, 1.02 * total / 7);
}

}  // namespace
}  // namespace fedsmooth
