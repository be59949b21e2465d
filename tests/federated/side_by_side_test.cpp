// Several runs at once: each must end as it would alone, bit for bit.
#include "fedsmooth/federated/side_by_side.h"

#include <functional>
#include <memory>

#include "fedsmooth/base/error.h"
#include "fedsmooth/engine/threaded_executor.h"
#include "tests/federated/groups_alone.h"
#include "tests/federated/small_training.h"

namespace fedsmooth {
namespace {

struct Case {
  std::string name;
  std::function<std::unique_ptr<Executor>()> make;
};

const std::vector<Case> kCases = {
    {"Serial", [] { return std::make_unique<SerialExecutor>(reference_passes); }},
    {"ReferenceInThreads", [] { return std::make_unique<ThreadedExecutor>(3, reference_passes); }},
    {"OneThread", [] { return std::make_unique<ThreadedExecutor>(1); }},
    {"Threads", [] { return std::make_unique<ThreadedExecutor>(3); }},
};

class SideBySideTest : public testing::TestWithParam<Case> {
 protected:
  const std::unique_ptr<Executor> executor_ = GetParam().make();
};

INSTANTIATE_TEST_SUITE_P(Executors, SideBySideTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

LocalTask task_of(uint64_t seed, double sigma, double epsilon, double learning_rate) {
  LocalTask task = small_task(Method::kSmoothAdv);
  task.seed = seed;
  task.smoothing.sigma = sigma;
  task.attack.epsilon = epsilon;
  task.local.learning_rate = learning_rate;
  return task;
}

void expect_same_round(const RoundResult& a, const RoundResult& b, const Weights& like) {
  const std::vector<Parameter> known = parameters(small_network());
  EXPECT_EQ(a.sum.kept_share(), b.sum.kept_share());
  EXPECT_EQ(a.dropped, b.dropped);
  if (b.sum.kept_share() > 0) expect_same(a.sum.average(like, known), b.sum.average(like, known));
  EXPECT_EQ(a.telemetry.loss, b.telemetry.loss);
  EXPECT_EQ(a.telemetry.steps, b.telemetry.steps);
  EXPECT_EQ(a.telemetry.perturbation, b.telemetry.perturbation);
  EXPECT_EQ(a.telemetry.histogram, b.telemetry.histogram);
}

TEST_P(SideBySideTest, RunsDoNotAffectEachOther) {
  const Partition p = partition(PartitionKind::kMajorClass);
  const Weights one = start().global, two = initial_weights(small_network(), Key{2});
  LocalTask broken = task_of(6, 0.25, 0.5, 1e30), plain = task_of(7, 0.25, 0.5, 0.1);
  plain.method = Method::kStandard;
  const std::vector<Round> rounds = {
      {task_of(4, 0.25, 0.5, 0.05), one, sample_cohort(p, 3, 4, 0)},
      {task_of(4, 0.12, 0.5, 0.05), one, sample_cohort(p, 1, 4, 7), 7},
      {broken, one, sample_cohort(p, 2, 6, 0)},
      {task_of(5, 0.5, 0.25, 0.1), two, sample_cohort(p, 2, 5, 1), 1},
      {plain, two, sample_cohort(p, 1, 7, 1), 1}};
  const std::vector<RoundResult> together = executor_->run(rounds);
  ASSERT_EQ(together.size(), rounds.size());
  EXPECT_EQ(together[2].dropped, 2);
  for (size_t i = 0; i < rounds.size(); ++i) {
    SCOPED_TRACE(i);
    expect_same_round(together[i], run_round(*executor_, rounds[i]), one);
  }
}

TEST_P(SideBySideTest, EachGroupHasTheBitsThatItHasAlone) {
  expect_groups_end_as_alone(small_task(Method::kGaussian), GetParam().make);
}

struct OwnRun {
  LocalTask task;
  TrainOptions options;
  ServerState state;
};

Training training_of(OwnRun& run, const Partition& p, const OnRound& on_round) {
  return {run.task, run.options, p, run.state, on_round};
}

// Runs of 2, 4 and 3 rounds with schedules, a warm-up and a momentum of their own, the last of them
// from its second round on.
TEST_P(SideBySideTest, RunsOfDifferentLengthsEndAsAlone) {
  const Partition p = partition(PartitionKind::kWhole, 1);
  std::vector<OwnRun> runs = {
      {task_of(1, 0.25, 0.5, 0.05), {.rounds = 2, .clients_per_round = 1}, start()},
      {task_of(2, 0.12, 1.0, 0.02),
       {.rounds = 4,
        .clients_per_round = 1,
        .schedule = Schedule::kCosine,
        .server = {.optimizer = "momentum", .momentum = 0.5}},
       start()},
      {task_of(3, 0.5, 0.25, 0.1),
       {.rounds = 3, .clients_per_round = 1, .schedule = Schedule::kStep},
       {1, initial_weights(small_network(), Key{2}), {}}}};
  runs[1].task.attack.warmup_rounds = 3;
  std::vector<OwnRun> alone = runs;
  std::vector<std::pair<size_t, int64_t>> order;
  std::vector<Training> trainings;
  for (size_t i = 0; i < runs.size(); ++i) {
    trainings.push_back(training_of(runs[i], p, [&order, i](const auto&, const auto& report) {
      order.emplace_back(i, report.round);
      return true;
    }));
  }
  for (const auto& thrown : train_side_by_side(trainings, *executor_)) EXPECT_FALSE(thrown);
  const std::vector<std::pair<size_t, int64_t>> a_round_at_a_time = {
      {0, 1}, {1, 1}, {2, 2}, {0, 2}, {1, 2}, {2, 3}, {1, 3}, {1, 4}};
  EXPECT_EQ(order, a_round_at_a_time);
  for (size_t i = 0; i < runs.size(); ++i) {
    SCOPED_TRACE(i);
    train(training_of(alone[i], p, [](const auto&, const auto&) { return true; }), *executor_);
    EXPECT_EQ(runs[i].state.round, alone[i].options.rounds);
    expect_same(runs[i].state.global, alone[i].state.global);
    ASSERT_EQ(runs[i].state.kept.size(), alone[i].state.kept.size());
    for (const auto& [name, kept] : alone[i].state.kept) {
      expect_same(runs[i].state.kept.at(name), kept);
    }
  }
}

TEST_P(SideBySideTest, AFailingOrStoppedRunEndsAlone) {
  const Partition p = partition(PartitionKind::kWhole, 1);
  const TrainOptions options = {.rounds = 3, .clients_per_round = 1};
  const LocalTask good = task_of(1, 0.25, 0.5, 0.05);
  std::vector<OwnRun> runs = {{task_of(1, 0.25, 0.5, 1e30), options, start()},
                              {good, options, start()},
                              {good, options, start()},
                              {good, options, start()}};
  const OnRound go_on = [](const auto&, const auto&) { return true; };
  const OnRound fail = [](const ServerState& state, const auto&) -> bool {
    if (state.round == 2) throw Error("the disk is full");
    return true;
  };
  const OnRound stop = [](const ServerState& state, const auto&) { return state.round < 2; };
  const auto thrown =
      train_side_by_side({training_of(runs[0], p, go_on), training_of(runs[1], p, fail),
                          training_of(runs[2], p, stop), training_of(runs[3], p, go_on)},
                         *executor_);
  ASSERT_EQ(thrown.size(), 4U);
  const auto message = [&](size_t i) -> std::string {
    try {
      if (thrown[i]) std::rethrow_exception(thrown[i]);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message(0).find("round 1: every client was dropped"), std::string::npos) << message(0);
  EXPECT_EQ(message(1), "the disk is full");
  EXPECT_EQ(message(2), "");
  EXPECT_EQ(message(3), "");
  EXPECT_EQ(runs[0].state.round, 0);
  EXPECT_EQ(runs[2].state.round, 2);
  OwnRun alone = {good, options, start()};
  train(training_of(alone, p, go_on), *executor_);
  expect_same(runs[3].state.global, alone.state.global);
}

}  // namespace
}  // namespace fedsmooth
