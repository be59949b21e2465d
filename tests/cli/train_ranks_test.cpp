// train and sweep on many ranks: the same bits as in one process, killed, hung, resumed, refused.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "fedsmooth/base/sha256.h"
#include "fedsmooth/records/certificate_file.h"
#include "fedsmooth/records/rounds.h"
#include "fedsmooth/records/run.h"
#include "tests/cli/ranks.h"
#include "tests/table_rows.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class TrainRanksTest : public RanksTest {
 protected:
  void SetUp() override {
    RanksTest::SetUp();
    // Client k holds k + 1 images: clients of unequal size.
    std::string clients;
    for (int k = 0; k < 10; ++k) {
      for (int i = 0; i <= k; ++i) {
        clients += std::to_string(k) + "\t" + std::to_string((7 * k + i) % 60) + "\n";
      }
    }
    write_file(path("clients.tsv"), clients);
    write_file(path("e.toml"),
               "[partition]\nkind = 'file'\nfile = '" + path("clients.tsv") +
                   "'\n[model]\nname = 'small'\n"
                   "[train]\nrounds = 4\nclients_per_round = 5\ncheckpoint_every = 2\n"
                   "server_momentum = 0.5\n[train.local]\nsteps = 2\nbatch = 6\n");
  }

  std::string train(const std::string& run, const std::string& more = "") const {
    return "train " + path("e.toml") + data_ + "--threads 1 --out " + path(run) + " " + more;
  }

  std::string model_of(const std::string& run) const {
    return sha256(read_file(path(run + "/model.safetensors")));
  }

  // Rows without their times.
  std::vector<std::string> rounds_of(const std::string& run) const {
    std::vector<std::string> rows;
    for (RoundRow row : read_rounds(path(run + "/rounds.tsv"))) {
      row.seconds = 0;
      rows.push_back(format_round(row));
    }
    return rows;
  }

  void expect_same_run(const std::string& a, const std::string& b) const {
    EXPECT_EQ(model_of(a), model_of(b));
    EXPECT_EQ(rounds_of(a), rounds_of(b));
  }
};

// Kills and waits take long.
class SlowTrainRanksTest : public TrainRanksTest {};

TEST_F(TrainRanksTest, AnyNumberGivesTheSameBits) {
  ASSERT_EQ(run(train("one")).status, 0);
  for (const int count : {1, 2, 4}) {
    const std::string name = "ranks" + std::to_string(count);
    const Outcome done = run_ranks(count, train(name));
    ASSERT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(done.out, path(name) + "\n");  // told once
    expect_same_run(name, "one");
  }
  const auto provenance = nlohmann::json::parse(read_file(path("ranks4/provenance.json")));
  EXPECT_EQ(provenance["ranks"], 4);
  // Per round at most a model of floats down and one of 64-bit sums up, and a little more.
  const auto model = static_cast<double>(fs::file_size(path("one/model.safetensors")));
  EXPECT_LT(provenance["bytes_to_each_rank"], 4 * 1.1 * model);
  EXPECT_LT(provenance["bytes_from_each_rank"], 4 * 2 * 1.1 * model);
}

// A step so long that it takes some clients beyond the bound of an average, and others not.
TEST_F(TrainRanksTest, AnyNumberNamesTheSameDroppedClients) {
  const std::string one_step =
      "--train.method=gaussian --train.rounds=1 --train.clients_per_round=10 "
      "--train.local.steps=1 --train.local.learning_rate=6000";
  const auto dropped = [](const Outcome& outcome) {
    const size_t first = outcome.err.find("warning: dropped");
    if (first == std::string::npos) return outcome.err;
    return outcome.err.substr(first, outcome.err.find('\n', first) - first);
  };
  const std::string expected = dropped(run(train("one", one_step)));
  EXPECT_NE(expected.find("in round 1 (classifier.weight is beyond 4096)"), std::string::npos)
      << expected;
  EXPECT_EQ(dropped(run_ranks(3, train("three", one_step))), expected);
  expect_same_run("three", "one");
}

TEST_F(SlowTrainRanksTest, AnyNumberKeepsTheSameCohort) {
  for (const std::string more : {"--aggregate.kind=median",
                                 "--aggregate.kind=trimmed-mean --aggregate.trim=0.25 "
                                 "--server.optimizer=adam --server.learning_rate=0.01 "
                                 "--train.local.mu=0.5",
                                 "--train.clients_per_round=6 --server.clusters=2 "
                                 "--byzantine.share=0.3 --aggregate.kind=krum "
                                 "--aggregate.clip=0.5",
                                 "--aggregate.sfat=1.4 --byzantine.share=0.3 "
                                 "--byzantine.kind=label-flip",
                                 "--server.optimizer=acg --server.momentum=0.8 "
                                 "--train.local.mu=0.1 --train.local.decay=0.1 "
                                 "--server.average_from=1"}) {
    const std::string name = std::to_string(more.size());
    ASSERT_EQ(run(train("one" + name, more)).status, 0);
    const Outcome done = run_ranks(3, train("ranks" + name, more));
    ASSERT_EQ(done.status, 0) << done.err;
    expect_same_run("ranks" + name, "one" + name);
  }
}

TEST_F(SlowTrainRanksTest, AnyNumberMinimisesTheSameObjective) {
  for (const std::string method : {"consistency", "smoothmix", "sun", "cat-rs"}) {
    const std::string more = "--train.method=" + method +
                             " --train.local.calibrate=true --train.rounds=2" +
                             (method == "cat-rs" ? " --objective.teacher_votes=50" : "");
    ASSERT_EQ(run(train("one-" + method, more)).status, 0);
    const Outcome done = run_ranks(2, train("two-" + method, more));
    ASSERT_EQ(done.status, 0) << done.err;
    expect_same_run("two-" + method, "one-" + method);
  }
}

TEST_F(TrainRanksTest, AnyNumberTrainsAndCertifiesTheSameGroups) {
  const std::string groups = "--groups.count=3 --train.rounds=2";
  ASSERT_EQ(run(train("one", groups)).status, 0);
  const Outcome done = run_ranks(3, train("three", groups));
  ASSERT_EQ(done.status, 0) << done.err;
  for (int64_t g = 1; g <= 3; ++g) {
    const std::string group = group_folder("", g).string();
    expect_same_run("three/" + group, "one/" + group);
  }
  // The seed of certificates is drawn: rows are the same for a given one.
  const auto rows = [&](const std::string& table) { return rows_without_times(path(table)); };
  const auto certify = [&](const std::string& run, const std::string& table) {
    return "certify " + path(run) + data_ + "--threads 1 --n 200 --every 1 --seed 3 --out " +
           path(table);
  };
  ASSERT_EQ(run(certify("one", "one.tsv")).status, 0);
  const Outcome certified = run_ranks(2, certify("three", "three.tsv"));
  ASSERT_EQ(certified.status, 0) << certified.err;
  EXPECT_EQ(rows("three.tsv"), rows("one.tsv"));
  expect_told_once(run_ranks(2, train("x", "--groups.count=40")), "clients is in group");
}

TEST_F(TrainRanksTest, MoreRanksThanClients) {
  const std::string few = "--train.clients_per_round=2 --train.rounds=2";
  ASSERT_EQ(run(train("one", few)).status, 0);
  const Outcome done = run_ranks(4, train("four", few));
  ASSERT_EQ(done.status, 0) << done.err;
  expect_same_run("four", "one");
}

TEST_F(SlowTrainRanksTest, AKilledRankEndsAllAndAnyNumberContinues) {
  const std::string longer = "--train.rounds=40 --resume";
  ASSERT_EQ(run(train("whole", longer)).status, 0);
  for (const int victim : {1, 0}) {  // in the middle of some round
    const pid_t job = start_ranks(3, train("killed", longer));
    wait_for_rows(path("killed/rounds.tsv"), victim == 1 ? 3 : 12);
    kill_rank(victim, SIGKILL);
    EXPECT_NE(finish(job).status, 0);
    EXPECT_FALSE(fs::exists(path("killed/DONE")));
  }
  const pid_t job = start_ranks(2, train("killed", longer));
  wait_for_rows(path("killed/rounds.tsv"), 24);
  ::kill(job, SIGUSR1);
  const Outcome stopped = finish(job);
  EXPECT_EQ(stopped.status, 130) << stopped.err;
  ASSERT_EQ(run(train("killed", longer)).status, 0);
  expect_same_run("killed", "whole");
}

TEST_F(SlowTrainRanksTest, AnInterruptSavesTheLastRound) {
  const std::string rare = "--train.rounds=100000 --train.checkpoint_every=100000";
  grace_ = 1;  // mpirun's default, in seconds
  const pid_t job = start_ranks(2, train("stopped", rare));
  wait_for_rows(path("stopped/rounds.tsv"), 3);
  ::kill(job, SIGTERM);  // after which mpirun kills
  EXPECT_NE(finish(job).status, 0);
  EXPECT_TRUE(fs::exists(path("stopped/checkpoint/state.safetensors")));
}

TEST_F(SlowTrainRanksTest, AHungRankEndsAll) {
  const pid_t job = start_ranks(2, train("hung", "--train.rounds=100000 --rank-timeout 3"));
  wait_for_rows(path("hung/rounds.tsv"), 2);
  kill_rank(1, SIGSTOP);
  expect_told_once(finish(job), "nothing heard from the other ranks for 3 s");
}

TEST_F(TrainRanksTest, RefusesRanksThatDiffer) {
  const std::string program = FEDSMOOTH_PROGRAM, other = path("other");
  const std::string first = ranks_of(program, 1, train("x"));
  fs::copy_file(program, other);
  std::ofstream(other, std::ios::app) << "\n";
  expect_told_once(finish(start_ranks(first + " : " + ranks_of(other, 1, train("x")))),
                   "rank 1: differs from rank 0 in program");
  expect_told_once(
      finish(start_ranks(first + " : " + ranks_of(program, 1, train("x", "--seed=1")))),
      "rank 1: differs from rank 0 in seed: \"0\" there, \"1\" here");
  expect_told_once(
      finish(start_ranks(first + " : " + ranks_of(program, 1, "train " + path("none.toml")))),
      "rank 1: " + path("none.toml"));
  EXPECT_FALSE(fs::exists(path("x")));
}

TEST_F(TrainRanksTest, RefusesALauncherThatMpiDoesNotKnow) {
  // Otherwise each of the processes would take itself for the only one.
  expect_refused(finish(start_command("env PMI_SIZE=2 " FEDSMOOTH_PROGRAM " " + train("x"))),
                 "started as one of 2 processes");
  EXPECT_FALSE(fs::exists(path("x")));
}

TEST_F(TrainRanksTest, TellsTheUsersMistakesOnce) {
  expect_told_once(run_ranks(2, train("x", "--train.clients_per_round=11")),
                   "there are 10 clients");
  expect_told_once(run_ranks(2, train("x", "--train.rundos=1")), "did you mean --train.rounds?");
  expect_told_once(run_ranks(2, "report " + path("x")), "report: runs in one process");
  EXPECT_FALSE(fs::exists(path("x")));
}

#ifdef FEDSMOOTH_WITHOUT_MPI
TEST_F(TrainRanksTest, ABuildWithoutMpiSaysSo) {
  const std::string program = FEDSMOOTH_WITHOUT_MPI;
  const Outcome refused = finish(start_ranks(ranks_of(program, 2, train("x"))));
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("this build has no MPI"), std::string::npos) << refused.err;
  EXPECT_FALSE(fs::exists(path("x")));
  EXPECT_EQ(finish(start_command(program + " " + train("x", "--train.rounds=1"))).status, 0);
}
#endif

TEST_F(SlowTrainRanksTest, PartsOfTheRanksShareASweep) {
  write_file(path("s.toml"), read_file(path("e.toml")) +
                                 "[certify]\nn0 = 10\nn = 100\nevery = 2\n"
                                 "[sweep]\n'train.method' = ['gaussian', 'standard']\n"
                                 "'train.mode' = ['federated', 'centralized']\n");
  const std::string sweep = "sweep " + path("s.toml") + data_ + "--threads 1 --train.rounds=2 ";
  ASSERT_EQ(run(sweep + "--out " + path("one")).status, 0);
  const Outcome done = run_ranks(3, sweep + "--side-by-side 2 --json --out " + path("many"));
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(nlohmann::json::parse(done.out)["runs"].size(), 4U);
  for (const auto& run : fs::directory_iterator(path("one"))) {
    const std::string name = run.path().filename();
    if (run.is_directory()) expect_same_run("many/" + name, "one/" + name);
  }
  EXPECT_TRUE(fs::exists(path("many/report.html")));
  expect_told_once(run_ranks(2, sweep + "--side-by-side 3 --out " + path("x")), "--side-by-side=3");
}

}  // namespace
}  // namespace fedsmooth
