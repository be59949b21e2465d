// What training says at its end, and which runs are trained side by side.
#include "fedsmooth/jobs/training.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "fedsmooth/base/file.h"
#include "fedsmooth/jobs/load_run.h"
#include "tests/jobs/job_folder.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

using TrainingTest = JobTest;

// Noise of this size on the weights of one of four clients; whoever sends it is dropped.
TEST_F(TrainingTest, SaysWhichUpdatesWereDropped) {
  Experiment e = small_experiment();
  e.train.clients_per_round = 4;
  e.train.byzantine.share = 0.25;
  e.train.byzantine.kind = ByzantineKind::kNoise;
  e.train.byzantine.scale = 1e6;
  jobs::train({e, path("run")}, context_);
  ASSERT_GE(warnings_.size(), 1U);
  const std::vector<int64_t> bad = byzantine_clients(e.train.byzantine, 4, e.seed);
  const std::string who = "client " + std::to_string(bad.at(0));
  EXPECT_EQ(warnings_[0], "warning: dropped 3 updates: " + who +
                              " in round 1 (features.0.weight is beyond 4096), " + who +
                              " in round 2 (features.0.weight is beyond 4096), " + who +
                              " in round 3 (features.0.weight is beyond 4096)");
}

TEST_F(TrainingTest, TablesOfAnotherRunAreRefusedInReports) {
  Experiment e = small_experiment();
  jobs::train({e, path("run")}, context_);
  e.seed = 5;
  jobs::train({e, path("other")}, context_);
  EXPECT_EQ(jobs::load_run(path("run")).rounds.size(), jobs::load_run(path("other")).rounds.size());
  for (const std::string table : {"rounds.tsv", "clients.tsv"}) {
    const std::string own = read_file(path("run") / table);
    write_file(path("run") / table, read_file(path("other") / table));
    expect_error([&] { jobs::load_run(path("run")); }, table + ": is not the table that this run");
    write_file(path("run") / table, own);
  }
}

// All clients send the opposite of what they learned.
TEST_F(TrainingTest, WarnsOfALossAboveThatOfGuessing) {
  Experiment e = small_experiment();
  e.train.byzantine = {.share = 1, .scale = 4};
  e.train.local.learning_rate = 0.05;
  jobs::train({e, path("wild")}, context_);
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_NE(warnings_[0].find("above that of guessing among 10 classes, 2.303: nothing was learned "
                              "yet, or train.local.learning_rate=0.05 is too large"),
            std::string::npos)
      << warnings_[0];
  // Eight images are soon learned; stability's other term lifts the loss above that of guessing.
  warnings_.clear();
  e = small_experiment();
  e.data.augment = false;
  e.partition.clients = e.train.clients_per_round = e.train.rounds = 1;
  e.partition.samples_per_client = 8;
  e.train.method = Method::kStability;
  e.objective.lambda = 1;
  e.train.local = {.steps = 20, .batch = 8, .learning_rate = 0.02};
  EXPECT_GT(jobs::train({e, path("learns")}, context_).loss, std::log(10));
  EXPECT_EQ(warnings_, std::vector<std::string>());
}

// Weights beyond every bound are the server's doing, not the clients'.
TEST_F(TrainingTest, NamesTheServersLearningRate) {
  Experiment e = small_experiment();
  e.train.server = {.optimizer = "momentum", .learning_rate = 1e30};
  for (const int64_t rounds : {1, 3}) {
    e.train.rounds = rounds;
    EXPECT_EQ(refusal([&] {
                jobs::train({e, path(std::to_string(rounds))}, context_);
              }),
              "round 1: features.0.weight is beyond 4096 after the server's step; "
              "server.learning_rate=1e+30 may be too large for server.optimizer=\"momentum\"");
  }
}

// Of every key that clients read: a value for which a run is not trained side by side with one that
// has the default; or, of the numbers that a local step takes, any.
TEST_F(TrainingTest, RunsGoSideBySideIfTheirStepsHaveTheSameOperations) {
  const std::map<std::string, std::string> apart = {{"data.name", "shapes"},
                                                    {"data.root", "elsewhere"},
                                                    {"data.augment", "false"},
                                                    {"data.held_out", "5"},
                                                    {"model.name", "small"},
                                                    {"model.mean", "[0.1]"},
                                                    {"model.sd", "[0.1]"},
                                                    {"model.layers", "[{kind = \"relu\"}]"},
                                                    {"smoothing.m", "3"},
                                                    {"attack.estimator", "two-point"},
                                                    {"attack.steps", "3"},
                                                    {"attack.epsilon", "0"},
                                                    {"attack.normalize", "false"},
                                                    {"train.mode", "centralized"},
                                                    {"train.method", "gaussian"},
                                                    {"train.local.steps", "3"},
                                                    {"train.local.batch", "3"},
                                                    {"train.local.passes", "3"},
                                                    {"train.local.mu", "0.5"},
                                                    {"train.local.decay", "0.5"},
                                                    {"train.local.calibrate", "true"},
                                                    {"objective.examples", "smoothadv"},
                                                    {"objective.steps", "3"},
                                                    {"objective.teacher", "t"},
                                                    {"objective.teacher_votes", "3"}};
  const std::map<std::string, std::string> together = {{"smoothing.sigma", "0.7"},
                                                       {"attack.step_size", "0.7"},
                                                       {"attack.warmup_rounds", "3"},
                                                       {"attack.measure_cosine", "true"},
                                                       {"train.local.learning_rate", "0.7"},
                                                       {"train.local.momentum", "0.7"},
                                                       {"train.local.weight_decay", "0.7"},
                                                       {"objective.lambda", "0.7"},
                                                       {"objective.eta", "0.7"},
                                                       {"objective.step_size", "0.7"}};
  for (const std::string& key : experiment_keys()) {
    const bool of_clients = key.starts_with("data.") || key.starts_with("model.") ||
                            key.starts_with("smoothing.") || key.starts_with("attack.") ||
                            key.starts_with("train.local.") || key.starts_with("objective.");
    Experiment other;
    if (apart.contains(key)) {
      set_key(other, key, apart.at(key));
      EXPECT_FALSE(jobs::go_side_by_side({}, other)) << key;
    } else if (together.contains(key)) {
      set_key(other, key, together.at(key));
      EXPECT_TRUE(jobs::go_side_by_side({}, other)) << key;
    } else {
      EXPECT_FALSE(of_clients) << key << ": say whether it decides a step";
    }
  }
  Experiment weak, strong;
  weak.attack.epsilon = weak.train.local.mu = 0.25;
  strong.attack.epsilon = strong.train.local.mu = 0.5;
  EXPECT_TRUE(jobs::go_side_by_side(weak, strong));
}

}  // namespace
}  // namespace fedsmooth
