// sweep of centralized experiments, which go side by side: every run folder must be what `train` of
// that experiment alone writes.
#include <gtest/gtest.h>

#include "fedsmooth/base/sha256.h"
#include "fedsmooth/records/rounds.h"
#include "tests/cli/program.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class SlowCentralizedSweepCommandTest : public ProgramTest {
 protected:
  void SetUp() override {
    if (std::system("command -v gnuplot >/dev/null") != 0) GTEST_SKIP() << "no gnuplot";
    ProgramTest::SetUp();
    write_tiny_data();
    const std::string experiment =
        "[data]\nname = 'image-folder'\nroot = '" + path("data") +
        "'\n[model]\nname = 'small'\n[train]\nmode = 'centralized'\ncheckpoint_every = 2\n"
        "server_momentum = 0.5\n[train.local]\nsteps = 6\nbatch = 4\n"
        "[certify]\nn0 = 2\nn = 20\nevery = 5\n";
    write_file(path("one.toml"), experiment);
    write_file(path("e.toml"), experiment +
                                   "[sweep]\n'smoothing.sigma' = [0.25, 0.5]\n"
                                   "'train.rounds' = [3, 8]\n");
    for (const std::string sigma : {"0.25", "0.5"}) {
      for (const std::string rounds : {"3", "8"}) {
        runs_.push_back({"e-sigma" + sigma + "-rounds" + rounds,
                         "--smoothing.sigma=" + sigma + " --train.rounds=" + rounds});
      }
    }
  }

  struct RunOfSweep {
    std::string name, options;
  };

  std::string sweep(const std::string& more = "") const {
    return "sweep " + path("e.toml") + " --out " + path("all") + " --threads 2 " + more;
  }

  std::string train(const RunOfSweep& one, const std::string& out) const {
    return "train " + path("one.toml") + " --quiet --out " + path(out) + " " + one.options;
  }

  // The table without the times.
  std::string rounds(const std::string& run) const {
    std::string text;
    for (RoundRow row : read_rounds(path(run + "/rounds.tsv"))) {
      row.seconds = 0;
      text += format_round(row);
    }
    return text;
  }

  void expect_runs_as_alone() {
    for (const RunOfSweep& one : runs_) {
      const std::string alone = "alone/" + one.name, found = "all/" + one.name;
      ASSERT_EQ(run(train(one, alone)).status, 0);
      for (const std::string file : {"experiment.toml", "clients.tsv", "model.safetensors",
                                     "checkpoint/state.safetensors", "DONE"}) {
        EXPECT_EQ(sha256(read_file(path(found + "/" + file))),
                  sha256(read_file(path(alone + "/" + file))))
            << one.name << " " << file;
      }
      EXPECT_EQ(rounds(found), rounds(alone)) << one.name;
    }
  }

  std::vector<RunOfSweep> runs_;
};

TEST_F(SlowCentralizedSweepCommandTest, TrainsSideBySideWhatTrainTrainsAlone) {
  const Outcome done = run(sweep());
  ASSERT_EQ(done.status, 0) << done.err;
  for (const size_t i : {0, 2}) {
    const std::string pair = runs_[i].name + ", " + runs_[i + 1].name;
    EXPECT_NE(done.err.find("2 runs side by side: " + pair + "\n"), std::string::npos) << done.err;
  }
  for (const RunOfSweep& one : runs_) {
    EXPECT_TRUE(fs::exists(path("all/" + one.name + "/certificates.tsv"))) << one.name;
  }
  expect_runs_as_alone();
}

// One run is ahead of those beside it when the sweep begins.
TEST_F(SlowCentralizedSweepCommandTest, KilledAndInterruptedItContinuesFromEachRunsOwnRound) {
  const pid_t ahead = start(train(runs_[1], "all/" + runs_[1].name));
  wait_for_rows(path("all/" + runs_[1].name + "/rounds.tsv"), 3);
  ::kill(ahead, SIGKILL);
  finish(ahead);
  const std::vector<std::pair<size_t, int>> stops = {{0, SIGKILL}, {2, SIGINT}};
  for (const auto& [first, signal] : stops) {
    const pid_t child = start(sweep());
    wait_for_rows(path("all/" + runs_[first].name + "/rounds.tsv"), 1);
    ::kill(child, signal);
    const Outcome stopped = finish(child);
    EXPECT_EQ(stopped.status, signal == SIGINT ? 130 : -SIGKILL) << stopped.err;
    if (signal == SIGINT) {
      EXPECT_NE(stopped.err.find("; continue with `"), std::string::npos) << stopped.err;
    }
  }
  const Outcome done = run(sweep("--quiet"));
  ASSERT_EQ(done.status, 0) << done.err;
  expect_runs_as_alone();
}

TEST_F(SlowCentralizedSweepCommandTest, ARunThatFailsDoesNotStopThoseBesideIt) {
  write_file(path("e.toml"), read_file(path("one.toml")) +
                                 "[sweep]\n'train.rounds' = [4]\n'train.local.learning_rate' = "
                                 "[0.05, 1e30, 0.01]\nseed = [1, 2]\n");
  const std::string name = "e-rounds4-learning_rate";
  write_file(path("all/" + name + "0.01-seed1/experiment.toml"), read_file(path("one.toml")));
  write_file(path("all/" + name + "0.01-seed1/checkpoint/state.safetensors"), "");
  const Outcome done = run(sweep("--quiet"));
  EXPECT_EQ(done.status, 2);
  for (const std::string seed : {"1", "2"}) {
    EXPECT_NE(done.err.find(name + "1e+30-seed" + seed + ": round 1: every client"),
              std::string::npos)
        << done.err;
    EXPECT_TRUE(fs::exists(path("all/" + name + "0.05-seed" + seed + "/certificates.tsv")));
  }
  EXPECT_NE(done.err.find(name + "0.01-seed1: "), std::string::npos) << done.err;
  EXPECT_NE(done.err.find("is another experiment"), std::string::npos) << done.err;
  EXPECT_TRUE(fs::exists(path("all/" + name + "0.01-seed2/certificates.tsv")));
  EXPECT_NE(done.err.find("\nsweep: 3 of 6 experiments failed\n"), std::string::npos) << done.err;
  // Three warn that nothing was learned.
  EXPECT_EQ(std::count(done.err.begin(), done.err.end(), '\n'), 7) << done.err;
}

// Only numbers may differ: another estimator, method or network is another local step.
TEST_F(SlowCentralizedSweepCommandTest, OnlyWhatSharesItsStepGoesSideBySide) {
  write_file(path("e.toml"), read_file(path("one.toml")) +
                                 "[sweep]\n'attack.estimator' = ['stochastic', 'one-point']\n"
                                 "'attack.epsilon' = [0.0, 0.5, 1.0]\n");
  const Outcome done = run(sweep("--train.rounds=1"));
  ASSERT_EQ(done.status, 0) << done.err;
  for (const std::string estimator : {"stochastic", "one-point"}) {
    EXPECT_NE(done.err.find("2 runs side by side: e-" + estimator + "-epsilon0.5, e-" + estimator +
                            "-epsilon1.0\n"),
              std::string::npos)
        << done.err;
  }
  const Outcome federated =
      run(sweep("--train.rounds=1 --train.mode=federated --out " + path("federated") +
                " --partition.clients=4 "
                "--partition.samples_per_client=10 "
                "--train.clients_per_round=1"));
  ASSERT_EQ(federated.status, 0) << federated.err;
  EXPECT_EQ(federated.err.find("side by side"), std::string::npos) << federated.err;
}

// Side by side with one that is new, too.
TEST_F(SlowCentralizedSweepCommandTest, TrainsOnceWhatAnEarlierSweepTrained) {
  const std::string one = read_file(path("one.toml"));
  write_file(path("e.toml"), one + "[sweep]\n'train.rounds' = [3]\n");
  ASSERT_EQ(run(sweep("--quiet")).status, 0);
  write_file(path("e.toml"), one +
                                 "[[sweep]]\n'train.rounds' = [2, 3]\n"
                                 "[[sweep]]\n'train.rounds' = [3]\n'certify.sigma' = [0.5]\n");
  const Outcome done = run(sweep());
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(done.err.find("side by side"), std::string::npos) << done.err;
  // The times are the same, which no second training would repeat.
  EXPECT_EQ(read_file(path("all/e-rounds3-sigma0.5/rounds.tsv")),
            read_file(path("all/e-rounds3/rounds.tsv")));
  EXPECT_EQ(read_rounds(path("all/e-rounds2/rounds.tsv")).size(), 2U);
}

}  // namespace
}  // namespace fedsmooth
