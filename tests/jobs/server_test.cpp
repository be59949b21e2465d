// A run folder with a server of several parts: stopped and resumed to the same bits, or refused.
#include <gtest/gtest.h>

#include "fedsmooth/federated/train.h"
#include "fedsmooth/jobs/training.h"
#include "tests/jobs/job_folder.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

using ServerTest = JobTest;

// State of the rule, kept cohorts, clusters, bad clients and FedProx at once.
TEST_F(ServerTest, AStoppedTrainingResumesToTheSameBits) {
  Experiment e = small_experiment();
  e.train.clients_per_round = 4;
  e.train.server = {.optimizer = "yogi", .learning_rate = 0.01, .clusters = 2};
  e.train.aggregate.kind = "trimmed-mean";
  e.train.byzantine = {.share = 0.25, .kind = ByzantineKind::kNoise, .scale = 0.01};
  e.train.local.mu = 0.5;
  const std::string whole = jobs::train({e, path("whole")}, context_).model_sha256;
  bool stop = false;
  context_.stopped = [&] { return stop; };
  const auto train_cut = [&] {
    return jobs::train(
        {e, path("cut"), /*resume=*/true, [&](const RoundRow& row) { stop = row.round == 1; }},
        context_);
  };
  EXPECT_THROW(train_cut(), Interrupted);  // after the second round
  EXPECT_FALSE(fs::exists(path("cut") / "DONE"));
  EXPECT_EQ(train_cut().model_sha256, whole);
}

TEST_F(ServerTest, RefusesBeforeAFolderIsMade) {
  Experiment e = small_experiment();
  e.train.server.optimizer = "yogi";
  expect_error([&] { jobs::train({e, path("x")}, context_); }, "server.learning_rate");
  EXPECT_FALSE(fs::exists(path("x")));
}

}  // namespace
}  // namespace fedsmooth
