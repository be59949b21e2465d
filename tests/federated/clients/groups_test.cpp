#include "fedsmooth/federated/clients/groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "fedsmooth/federated/side_by_side.h"
#include "tests/federated/small_training.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

Partition group_partition(int64_t clients, const GroupOptions& groups,
                          PartitionKind kind = PartitionKind::kIid) {
  PartitionOptions o;
  o.kind = kind;
  o.clients = clients;
  o.samples_per_client = 40;
  Partition p(o, shapes().labels, 10, 0);
  p.take_group(groups);
  return p;
}

const OnRound kAny = [](const auto&, const auto&) { return true; };

TEST(GroupsTest, EveryClientIsInOneGroupWhateverOthersThereAre) {
  std::set<int64_t> all;
  for (int64_t g = 1; g <= 7; ++g) {
    const std::vector<int64_t> few = clients_of_group({7, g}, 200, 5);
    const std::vector<int64_t> many = clients_of_group({7, g}, 300, 5);
    EXPECT_TRUE(std::ranges::is_sorted(few));
    ASSERT_LE(few.size(), many.size());
    EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
    for (const int64_t k : few) EXPECT_TRUE(all.insert(k).second);
  }
  EXPECT_EQ(all.size(), 200U);
}

TEST(GroupsTest, GroupsAreOfAboutTheSameSizeAndKeyedByTheSeed) {
  constexpr int64_t kClients = 20'000, kGroups = 10;
  int64_t moved = 0;
  std::vector<int64_t> sizes(kGroups, 0);
  for (int64_t k = 0; k < kClients; ++k) {
    ++sizes[group_of(k, kGroups, 1) - 1];
    moved += group_of(k, kGroups, 1) != group_of(k, kGroups, 2);
  }
  for (const int64_t size : sizes) EXPECT_NEAR(size, 2000, 5 * std::sqrt(2000 * 0.9));
  EXPECT_NEAR(moved, 0.9 * kClients, 5 * std::sqrt(kClients * 0.09));
}

TEST(GroupsTest, ACohortIsOfItsGroupAndASmallerGroupGivesAllThatItHas) {
  const GroupOptions third{3, 2};
  const Partition p = group_partition(30, third);
  const std::vector<int64_t> members = p.members();
  for (int64_t t = 0; t < 20; ++t) {
    const std::vector<int64_t> cohort = sample_cohort(p, 4, 1, t).clients;
    EXPECT_EQ(cohort.size(), 4U);
    EXPECT_TRUE(std::ranges::includes(members, cohort));
  }
  EXPECT_EQ(sample_cohort(p, 100, 1, 0).clients, members);
  check_train_options({.clients_per_round = 100}, {}, p);
}

TEST(GroupsTest, AClientKeepsItsImagesInItsGroup) {
  for (const auto kind : {PartitionKind::kIid, PartitionKind::kDirichlet}) {
    const Partition all = partition(kind), one = group_partition(12, {2, 1}, kind);
    for (const int64_t k : one.members()) EXPECT_EQ(one.images(k), all.images(k)) << k;
  }
}

TEST(GroupsTest, OneMoreClientChangesTheRoundsOfItsGroupAlone) {
  constexpr int64_t kGroups = 3, kClients = 30;
  const int64_t its_group = group_of(kClients, kGroups, 0);
  for (int64_t g = 1; g <= kGroups; ++g) {
    const Partition before = group_partition(kClients, {kGroups, g});
    const Partition after = group_partition(kClients + 1, {kGroups, g});
    bool same = true;
    for (int64_t t = 0; t < 20; ++t) {
      for (int64_t number = 0; number < 2; ++number) {
        same = same && sample_cohort(before, 2, 0, t, {number, 2}).clients ==
                           sample_cohort(after, 2, 0, t, {number, 2}).clients;
      }
    }
    EXPECT_EQ(same, g != its_group) << g;
  }
}

TEST(GroupsTest, ClustersDivideTheGroup) {
  const Partition p = group_partition(30, {2, 1});
  std::vector<int64_t> found;
  for (int64_t number = 0; number < 3; ++number) {
    const std::vector<int64_t> cluster = sample_cohort(p, 100, 0, 0, {number, 3}).clients;
    found.insert(found.end(), cluster.begin(), cluster.end());
  }
  std::ranges::sort(found);
  EXPECT_EQ(found, p.members());
}

TEST(GroupsTest, RefusesEmptyGroupsAndGroupsTooSmallForTheOptions) {
  const auto empty = [] {
    for (int64_t g = 1; g <= 40; ++g) group_partition(12, {40, g});
  };
  EXPECT_NE(refusal(empty).find("none of the 12 clients is in group"), std::string::npos);
  const Partition p = group_partition(12, {3, 1});
  TrainOptions o{.clients_per_round = 24};
  o.server.clusters = 12;
  EXPECT_NE(refusal([&] { check_train_options(o, {}, p); }).find("server.clusters=12: group 1, of"),
            std::string::npos);
  o.server.clusters = 1;
  o.aggregate.kind = "krum";
  o.aggregate.assumed_bad = 5;
  EXPECT_NE(refusal([&] { check_train_options(o, {}, p); }).find("group 1, of"), std::string::npos);
}

// Sends weights that are no numbers, or so large that they are dropped, in the rounds that it is
// told to.
class FailingExecutor : public SerialExecutor {
 public:
  FailingExecutor(int64_t run, std::set<int64_t> rounds)
      : SerialExecutor(reference_passes), run_(run), rounds_(std::move(rounds)) {}

  std::vector<RoundResult> run(const std::vector<Round>& rounds) override {
    std::vector<RoundResult> results = SerialExecutor::run(rounds);
    for (size_t i = 0; i < rounds.size(); ++i) {
      if (rounds[i].run != run_ || !rounds_.contains(rounds[i].t)) continue;
      results[i] = {};
      for (const int64_t k : rounds[i].cohort.clients) results[i].drop(k, "no numbers");
    }
    return results;
  }

 private:
  int64_t run_;
  std::set<int64_t> rounds_;
};

struct GroupState {
  ServerState state;
  std::vector<Weights> after;  // of each round
  std::vector<int64_t> dropped;
};

// Two groups side by side; `group` 1 fails in some rounds.
std::vector<GroupState> train_two(const TrainOptions& options, const std::set<int64_t>& failing) {
  const LocalTask task = linear_task();
  const std::vector<Partition> partitions = {group_partition(12, {2, 1}),
                                             group_partition(12, {2, 2})};
  std::vector<GroupState> groups(2);
  std::vector<Training> runs;
  for (int64_t g = 0; g < 2; ++g) {
    groups[g].state = start(task);
    const auto on_round = [&group = groups[g]](const ServerState& s, const RoundReport& report) {
      group.after.push_back(s.global);
      group.dropped.push_back(report.dropped);
      return true;
    };
    runs.push_back({task, options, partitions[g], groups[g].state, on_round, g});
  }
  FailingExecutor executor(0, failing);
  for (const auto& thrown : train_side_by_side(runs, executor)) EXPECT_FALSE(thrown);
  return groups;
}

TEST(GroupsTest, ARoundInWhichAllClientsFailLeavesItsGroupAndNoOtherChanged) {
  for (const std::string optimizer : {"average", "momentum", "adam"}) {
    TrainOptions options{.rounds = 4, .clients_per_round = 2};
    options.server.optimizer = optimizer;
    if (optimizer == "adam") options.server.learning_rate = 0.01;
    const std::vector<GroupState> fine = train_two(options, {});
    const std::vector<GroupState> failed = train_two(options, {0, 2});
    expect_same(failed[0].after[0], start(linear_task()).global);
    expect_same(failed[0].after[2], failed[0].after[1]);
    EXPECT_FALSE(same_bits(failed[0].after[1][0], failed[0].after[0][0]));
    EXPECT_EQ(failed[0].dropped, (std::vector<int64_t>{2, 0, 2, 0}));
    expect_same(failed[1].state.global, fine[1].state.global);
    // The server's state is complete, so that a checkpoint can be read.
    EXPECT_EQ(failed[0].state.kept.size(), fine[0].state.kept.size());
  }
}

TEST(GroupsTest, AServersStepBeyondAllBoundsLeavesTheModelAsItWas) {
  TrainOptions options{.rounds = 3, .clients_per_round = 2};
  options.server = {.optimizer = "momentum", .learning_rate = 1e30};
  const std::vector<GroupState> groups = train_two(options, {});
  for (const GroupState& group : groups) {
    EXPECT_EQ(group.state.round, 3);
    expect_same(group.state.global, start(linear_task()).global);
  }
}

}  // namespace
}  // namespace fedsmooth
