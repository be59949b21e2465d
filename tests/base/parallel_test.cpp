#include "fedsmooth/base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <stdexcept>
#include <thread>

namespace fedsmooth {
namespace {

TEST(ParallelTest, EachWorkerRunsTheJobOnce) {
  Workers workers(3);
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> seen[3] = {};
    workers.run([&](int worker) { ++seen[worker]; });
    for (const auto& count : seen) EXPECT_EQ(count, 1);
  }
}

TEST(ParallelTest, AnExceptionReachesTheCaller) {
  Workers workers(2);
  EXPECT_THROW(workers.run([](int worker) {
    if (worker == 1) throw std::runtime_error("x");
  }),
               std::runtime_error);
  int calls = 0;
  workers.run([&](int worker) { calls += worker == 0; });
  EXPECT_EQ(calls, 1);
}

TEST(ParallelTest, ThereIsAtLeastOneCore) { EXPECT_GE(available_cores(), 1); }

}  // namespace
}  // namespace fedsmooth
