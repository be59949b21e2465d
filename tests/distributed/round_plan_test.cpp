#include "fedsmooth/distributed/round_plan.h"

#include <gtest/gtest.h>

#include "fedsmooth/base/check.h"
#include "tests/arrays.h"
#include "tests/federated/small_training.h"

namespace fedsmooth {
namespace {

TEST(RoundPlanTest, EveryClientHasOneRankAndReadsBack) {
  const Partition p = partition(PartitionKind::kIid);
  const Weights global = start().global;
  const Weights velocity = initial_weights(small_network(), Key{2});
  const std::vector<Round> rounds = {
      {small_task(Method::kStandard), global, sample_cohort(p, 5, 0, 0), 0, 2},
      {small_task(Method::kStandard), global, sample_cohort(p, 1, 0, 7), 7, 0, Gather::kEach,
       &velocity},
  };
  const std::vector<RoundAssignment> plan = plan_rounds(rounds, 4);
  const std::vector<RoundAssignment> read = parse_plan(format_plan(plan), small_network(), 4);
  ASSERT_EQ(read.size(), 2U);
  std::vector<size_t> loads(4);
  for (size_t r = 0; r < 2; ++r) {
    EXPECT_EQ(read[r].run, rounds[r].run);
    EXPECT_EQ(read[r].t, rounds[r].t);
    EXPECT_EQ(read[r].total, rounds[r].cohort.total);
    EXPECT_EQ(read[r].clients, plan[r].clients);
    expect_same(read[r].global, global);
    expect_same(read[r].velocity, r == 0 ? Weights{} : velocity);
    std::vector<int64_t> all;
    for (size_t rank = 0; rank < 4; ++rank) {
      loads[rank] += read[r].clients[rank].size();
      all.insert(all.end(), read[r].clients[rank].begin(), read[r].clients[rank].end());
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, rounds[r].cohort.clients);
  }
  for (const size_t load : loads) EXPECT_TRUE(load == 1 || load == 2) << load;
}

TEST(RoundPlanTest, CarriesTheTablesOfTheTask) {
  const Weights global = start().global;
  const Cohort cohort = sample_cohort(partition(PartitionKind::kIid), 3, 0, 0);
  LocalTask task = small_task(Method::kStandard);
  std::vector<Round> rounds = {{task, global, cohort}};
  task.teacher = uniform({4, 10}, 1);
  task.image_weights = uniform({4}, 2);
  rounds.push_back({task, global, cohort});
  const auto read = parse_plan(format_plan(plan_rounds(rounds, 2)), small_network(), 2);
  EXPECT_FALSE(read[0].teacher.defined() || read[0].image_weights.defined());
  EXPECT_TRUE(same_bits(read[1].teacher, task.teacher));
  EXPECT_TRUE(same_bits(read[1].image_weights, task.image_weights));
}

TEST(RoundPlanTest, RefusesACutPlan) {
  const Weights global = start().global;
  const std::vector<Round> rounds = {{small_task(Method::kStandard), global,
                                      sample_cohort(partition(PartitionKind::kIid), 3, 0, 0)}};
  const std::string bytes = format_plan(plan_rounds(rounds, 2));
  EXPECT_THROW(parse_plan(bytes.substr(0, bytes.size() - 1), small_network(), 2), Bug);
}

}  // namespace
}  // namespace fedsmooth
