// A run folder with a server of several parts: stopped and resumed to the same bits, or refused.
#include <gtest/gtest.h>

#include "fedsmooth/federated/train.h"
#include "fedsmooth/jobs/training.h"
#include "tests/jobs/job_folder.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class ServerTest : public JobTest {
 protected:
  // `name` is of the folders.
  void expect_resumed_to_same_bits(const Experiment& e, const std::string& name) {
    const std::string whole = jobs::train({e, path("whole-" + name)}, context_).model_sha256;
    bool stop = false;
    context_.stopped = [&] { return stop; };
    const auto train_cut = [&] {
      return jobs::train({e, path("cut-" + name), /*resume=*/true,
                          [&](const RoundRow& row) { stop = row.round == 1; }},
                         context_);
    };
    EXPECT_THROW(train_cut(), Interrupted);  // after the second round
    EXPECT_FALSE(fs::exists(path("cut-" + name) / "DONE"));
    EXPECT_EQ(train_cut().model_sha256, whole);
    context_.stopped = [] { return false; };
  }
};

// State of the rule, kept cohorts, clusters, bad clients and FedProx at once.
TEST_F(ServerTest, AStoppedTrainingResumesToTheSameBits) {
  for (const std::string optimizer : {"yogi", "acg"}) {
    SCOPED_TRACE(optimizer);
    Experiment e = small_experiment();
    e.train.clients_per_round = 4;
    e.train.server = {.optimizer = optimizer, .learning_rate = 0.01, .clusters = 2};
    e.train.server.average_from = 2;
    e.train.aggregate.kind = "trimmed-mean";
    e.train.byzantine = {.share = 0.25, .kind = ByzantineKind::kNoise, .scale = 0.01};
    e.train.local.mu = 0.5;
    expect_resumed_to_same_bits(e, optimizer);
  }
}

TEST_F(ServerTest, RefusesRulesThatARunDoesNotHave) {
  Experiment e = small_experiment();
  e.train.server.average_from = e.train.rounds + 1;
  expect_error([&] { jobs::train({e, path("x")}, context_); }, "server.average_from=");
  e.train.server.average_from = 0;
  e.train.mode = Mode::kCentralized;
  e.train.local.decay = 0.5;
  expect_error([&] { jobs::train({e, path("x")}, context_); }, "train.local.decay=0.5: is of a");
}

TEST_F(ServerTest, RefusesBeforeAFolderIsMade) {
  Experiment e = small_experiment();
  e.train.server.optimizer = "yogi";
  expect_error([&] { jobs::train({e, path("x")}, context_); }, "server.learning_rate");
  EXPECT_FALSE(fs::exists(path("x")));
}

}  // namespace
}  // namespace fedsmooth
