// train, as a user runs it: killed, interrupted, resumed, refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fedsmooth/base/sha256.h"
#include "fedsmooth/model/safetensors.h"
#include "fedsmooth/records/clients.h"
#include "fedsmooth/records/rounds.h"
#include "tests/cli/program.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class TrainCommandTest : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    write_file(path("e.toml"),
               "[data]\nname = 'shapes'\n"
               "[partition]\nclients = 20\nsamples_per_client = 50\n"
               "[model]\nname = 'small'\n"
               "[train]\nrounds = 8\nclients_per_round = 3\ncheckpoint_every = 2\n"
               "server_momentum = 0.5\n"
               "[train.local]\nsteps = 4\nbatch = 10\n");
  }

  std::string train(const std::string& run, const std::string& more = "") const {
    return "train " + path("e.toml") + " --out " + path(run) + " " + more;
  }

  std::string model_of(const std::string& run) const {
    return sha256(read_file(path(run + "/model.safetensors")));
  }
};

class SlowTrainCommandTest : public TrainCommandTest {};

TEST_F(TrainCommandTest, WritesARunFolder) {
  const Outcome done = run(train("run", "--json --train.evaluate_every=4 --train.rounds=4"));
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(nlohmann::json::parse(done.out)["rounds"], 4);
  for (const std::string file : {"experiment.toml", "provenance.json", "model.safetensors", "DONE",
                                 "checkpoint/state.safetensors"}) {
    EXPECT_TRUE(fs::exists(path("run/" + file))) << file;
  }
  const auto rows = read_rounds(path("run/rounds.tsv"));
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_FALSE(rows[0].noisy_accuracy);
  EXPECT_TRUE(rows[3].noisy_accuracy);
  EXPECT_GT(rows[0].perturbation_mean, 0.5);
  const Outcome certified =
      run("certify " + path("run") + " --json --certify.n=200 --every 400 --n0 20");
  EXPECT_EQ(certified.status, 0) << certified.err;
  EXPECT_TRUE(fs::exists(path("run/certificates.tsv")));
}

TEST_F(TrainCommandTest, SaysWhatTheClientsHold) {
  const std::string one_round = "--train.rounds=1 --train.local.steps=1" + write_tiny_data() +
                                "--partition.samples_per_client=10 ";
  ASSERT_EQ(run(train("some", one_round + "--partition.gamma=0.5")).status, 0);
  const auto some = read_clients(path("some/clients.tsv"));
  ASSERT_EQ(some.size(), 20U);
  for (const ClientRow& row : some) {
    EXPECT_EQ(row.images(), 10);
    EXPECT_EQ(*std::max_element(row.labels.begin(), row.labels.end()), 5);
  }
  ASSERT_EQ(run(train("many", one_round + "--partition.clients=2500")).status, 0);
  const auto many = read_clients(path("many/clients.tsv"));
  ASSERT_EQ(many.size(), 1000U);
  EXPECT_EQ(many[1].client, 2);
  EXPECT_EQ(many[999].client, 2497);
  ASSERT_EQ(run(train("whole", one_round + "--train.mode=centralized")).status, 0);
  const auto whole = read_clients(path("whole/clients.tsv"));
  ASSERT_EQ(whole.size(), 1U);
  EXPECT_EQ(whole[0].images(), 60);
}

TEST_F(SlowTrainCommandTest, KilledAndResumedIsTheSameModel) {
  ASSERT_EQ(run(train("whole", "--threads 1")).status, 0);
  for (const int64_t at : {1, 4, 7}) {
    const pid_t child = start(train("killed", "--threads 2 --resume"));
    wait_for_rows(path("killed/rounds.tsv"), at);
    ::kill(child, SIGKILL);
    finish(child);
  }
  ASSERT_EQ(run(train("killed", "--resume")).status, 0);
  EXPECT_EQ(model_of("killed"), model_of("whole"));
  EXPECT_EQ(read_rounds(path("killed/rounds.tsv")).size(), 8U);
}

TEST_F(SlowTrainCommandTest, InterruptedSavesAndContinues) {
  ASSERT_EQ(run(train("whole")).status, 0);
  const pid_t child = start(train("stopped"));
  wait_for_rows(path("stopped/rounds.tsv"), 1);
  ::kill(child, SIGINT);
  const Outcome stopped = finish(child);
  EXPECT_EQ(stopped.status, 130) << stopped.err;
  EXPECT_FALSE(fs::exists(path("stopped/DONE")));
  expect_refused(run("certify " + path("stopped")), "unfinished");
  ASSERT_EQ(run(train("stopped", "--resume")).status, 0);
  EXPECT_EQ(model_of("stopped"), model_of("whole"));
}

// As if it was killed after its last round.
TEST_F(TrainCommandTest, DoesNotContinueWithOtherClientsOrOtherArithmetic) {
  write_file(path("clients.tsv"), "0\t1\n0\t2\n1\t3\n");
  const std::string tiny = train("run",
                                 "--train.rounds=2 --train.clients_per_round=1 --resume"
                                 " --device cpu --partition.kind=file --partition.file=" +
                                     path("clients.tsv") + write_tiny_data());
  ASSERT_EQ(run(tiny).status, 0);
  fs::remove(path("run/DONE"));
  ASSERT_EQ(run(tiny).status, 0);
  fs::remove(path("run/DONE"));
  const std::string checkpoint = path("run/checkpoint/state.safetensors");
  const std::string bytes = read_file(checkpoint);
  Safetensors other = parse_safetensors(bytes, checkpoint);
  other.metadata.erase("checksum");
  other.metadata["arithmetic"] = "another";
  write_file(checkpoint, format_safetensors(other));
  expect_refused(run(tiny), "arithmetic another");
  write_file(checkpoint, bytes);
  write_file(path("clients.tsv"), "0\t1\n0\t2\n1\t4\n");
  expect_refused(run(tiny), "partition_sha256");
}

TEST_F(TrainCommandTest, RefusesTheCheckpointOfAnotherExperiment) {
  const std::string run_a = train("a", "--train.rounds=2 --resume");
  ASSERT_EQ(run(run_a).status, 0);
  ASSERT_EQ(run(train("b", "--train.rounds=2 --train.method=standard --seed=9")).status, 0);
  fs::remove(path("a/DONE"));
  const std::string state = "/checkpoint/state.safetensors";
  const std::string own = read_file(path("a" + state));
  write_file(path("a" + state), read_file(path("b" + state)));
  expect_refused(run(run_a), "is of another experiment: seed is 9 there, 0 here");
  // One of an earlier version does not say.
  Safetensors older = parse_safetensors(own, "own");
  older.metadata.erase("checksum");
  older.metadata.erase("experiment");
  write_file(path("a" + state), format_safetensors(older));
  EXPECT_EQ(run(run_a).status, 0);
}

TEST_F(TrainCommandTest, RefusesARoundsTableThatEndsBeforeTheCheckpoint) {
  const std::string two = train("run", "--train.rounds=2 --resume");
  ASSERT_EQ(run(two).status, 0);
  fs::remove(path("run/DONE"));
  const auto rows = read_rounds(path("run/rounds.tsv"));
  write_file(path("run/rounds.tsv"), round_header() + format_round(rows[0]));
  expect_refused(run(two), "has no row of round 2, the checkpoint is of round 2");
  write_file(path("run/rounds.tsv"), round_header() + format_round(rows[1]));
  expect_refused(run(two), "has no row of round 1");
}

TEST_F(TrainCommandTest, ResumesWithOtherCertificatesAndLogs) {
  const std::string two = train("run", "--train.rounds=2 --resume ");
  ASSERT_EQ(run(two).status, 0);
  const std::string model = model_of("run");
  fs::remove(path("run/DONE"));
  const Outcome again = run(two + "--certify.every=77 --log.tensorboard=true");
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(model_of("run"), model);
  const std::string now = read_file(path("run/experiment.toml"));
  EXPECT_NE(now.find("every = 77\n"), std::string::npos) << now;
  EXPECT_NE(now.find("tensorboard = true\n"), std::string::npos) << now;
}

TEST_F(TrainCommandTest, RefusesADamagedCheckpointAndASecondProcess) {
  const std::string two = train("run", "--train.rounds=2 --resume");
  ASSERT_EQ(run(two).status, 0);
  expect_refused(run(train("run", "--train.rounds=2 --certify.n=5 --resume")), "too few votes");
  fs::remove(path("run/DONE"));
  {
    const FolderLock lock(path("run"));
    expect_refused(run(two), "another process");
  }
  std::string bytes = read_file(path("run/checkpoint/state.safetensors"));
  bytes.back() ^= 1;
  write_file(path("run/checkpoint/state.safetensors"), bytes);
  expect_refused(run(two), "damaged");
}

TEST_F(TrainCommandTest, BeginsAnewWhereNothingWasSaved) {
  expect_refused(run(train("run", "--train.local.learning_rate=1e6 --train.method=standard")),
                 "learning_rate");
  EXPECT_EQ(run(train("run", "--train.rounds=1")).status, 0);
  for (const std::string file : {"DONE", "model.safetensors", "checkpoint/state.safetensors"}) {
    fs::remove(path("run/" + file));  // what is kept of results
  }
  expect_refused(run(train("run", "--train.rounds=2")), "is another experiment");
  write_file(path("own/experiment.toml"), "# mine\n" + read_file(path("e.toml")));
  expect_refused(run("train " + path("own/experiment.toml") + " --out " + path("own")), "exists");
}

TEST_F(TrainCommandTest, ContinuesWithTheSeedThatItDrew) {
  const std::string drawn = train("run", "--seed=random --train.rounds=1 --resume");
  ASSERT_EQ(run(drawn).status, 0);
  const std::string model = model_of("run");
  fs::remove(path("run/DONE"));
  const Outcome again = run(drawn);
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(model_of("run"), model);
}

TEST_F(TrainCommandTest, RefusesTheUsersMistakes) {
  ASSERT_EQ(run(train("run", "--train.rounds=1")).status, 0);
  expect_refused(run(train("run", "--train.rounds=1")), "exists");
  expect_refused(run(train("run", "--train.rounds=2 --resume")), "train.rounds is 1 there");
  EXPECT_EQ(run(train("run", "--train.rounds=1 --resume")).status, 0);
  expect_refused(run(train("x", "--train.clients_per_round=21")), "there are 20 clients");
  expect_refused(run(train("x", "--train.local.learning_rate=0")), "must be positive");
  expect_refused(run(train("x", "--attack.estimator=three-point")), "must be stochastic");
  expect_refused(run(train("x", "--smoothing.sigma=-0.5")), "must be positive");
  expect_refused(run(train("x", "--partition.clients=4611686018427387904")), "at most 1000000");
  write_file(path("twice.tsv"), "0\t1\n0\t2\n0\t1\n");
  expect_refused(run(train("x", "--partition.kind=file --partition.file=" + path("twice.tsv"))),
                 "has image 1 twice");
  expect_refused(run(train("x", "--partition.samples_per_client=20000")), "there are 10000");
  expect_refused(run(train("x", "--data.name=cifar10 --data.root=" + path("none"))), "none");
  EXPECT_FALSE(fs::exists(path("x")));
  expect_refused(run(train("d", "--train.local.learning_rate=1e6 --train.method=standard")),
                 "learning_rate");
  EXPECT_FALSE(fs::exists(path("d/DONE")));
}

}  // namespace
}  // namespace fedsmooth
