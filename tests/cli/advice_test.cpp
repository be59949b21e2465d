// Commands that messages give, run as they are printed.
#include <gtest/gtest.h>

#include "fedsmooth/base/sha256.h"
#include "tests/cli/program.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class AdviceTest : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    tiny_data_ = write_tiny_data();
    write_file(
        path("my experiment.toml"),
        "[data]\nname = 'image-folder'\nroot = '" + path("data") +
            "'\n[partition]\nclients = 4\nsamples_per_client = 10\n[model]\nname = 'small'\n"
            "[train]\nrounds = 2\nclients_per_round = 2\n[train.local]\nsteps = 2\nbatch = 2\n"
            "[certify]\nn0 = 10\nn = 200\nevery = 1\n");
  }

  // A space in its name has to be quoted.
  std::string train(const std::string& out, const std::string& more = "") const {
    return "train '" + path("my experiment.toml") + "' --device cpu --out '" + path(out) + "' " +
           more;
  }

  // The command between backticks, or after "next: ".
  static std::string command_in(const std::string& message) {
    const size_t next = message.find("next: ");
    if (next != std::string::npos) {
      return message.substr(next + 6, message.find('\n', next) - next - 6);
    }
    const size_t begin = message.find('`');
    EXPECT_NE(begin, std::string::npos) << message;
    return begin == std::string::npos
               ? "false"
               : message.substr(begin + 1, message.find('`', begin + 1) - begin - 1);
  }

  Outcome follow(const Outcome& advice) { return finish(start_command(command_in(advice.err))); }

  std::string tiny_data_;
};

TEST_F(AdviceTest, AnInterruptedTrainingResumesByThePrintedCommand) {
  ASSERT_EQ(run(train("whole", "--train.rounds=300")).status, 0);
  const pid_t child = start(train("a run", "--train.rounds=300"));
  wait_for_rows(path("a run/rounds.tsv"), 1);
  ::kill(child, SIGINT);
  const Outcome stopped = finish(child);
  ASSERT_EQ(stopped.status, 130) << stopped.err;
  EXPECT_EQ(command_in(stopped.err), std::string(FEDSMOOTH_PROGRAM) + " train --resume '" +
                                         path("a run") + "' --device cpu");
  const Outcome unfinished = run("certify '" + path("a run") + "'");
  expect_refused(unfinished, "unfinished (no DONE file); continue with `");
  const Outcome resumed = follow(stopped);
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_EQ(sha256(read_file(path("a run/model.safetensors"))),
            sha256(read_file(path("whole/model.safetensors"))));
  EXPECT_EQ(follow(unfinished).status, 0);
}

TEST_F(AdviceTest, EachCommandNamesTheNext) {
  const Outcome trained = run(train("run"));
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_EQ(command_in(trained.err), std::string(FEDSMOOTH_PROGRAM) + " certify " + path("run"));
  const Outcome certified = follow(trained);
  ASSERT_EQ(certified.status, 0) << certified.err;
  EXPECT_EQ(command_in(certified.err), std::string(FEDSMOOTH_PROGRAM) + " report " + path("run"));
  EXPECT_EQ(run(train("quiet", "--quiet")).err.find("next: "), std::string::npos);
}

TEST_F(AdviceTest, ARunFolderMeansItsOwnExperiment) {
  ASSERT_EQ(run(train("run", "--train.rounds=3")).status, 0);
  fs::remove(path("run/DONE"));
  // Training does not read [certify].
  std::string experiment = read_file(path("run/experiment.toml"));
  experiment.replace(experiment.find("every = 1\n"), 10, "every = 2\n");
  write_file(path("run/experiment.toml"), experiment);
  const Outcome resumed = run("train --resume " + path("run"));
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_EQ(resumed.out, path("run") + "\n");
  EXPECT_EQ(run("train --resume " + path("run/experiment.toml")).out,
            path("run") + ": done already\n");
  const Outcome exists = run("train " + path("run"));
  expect_refused(exists, "exists; continue it with `");
  EXPECT_EQ(follow(exists).out, path("run") + ": done already\n");
  expect_refused(run("train --resume " + path("data")), "data: no run here");
}

TEST_F(AdviceTest, SaysThatThereIsNothingToResume) {
  const Outcome trained = run(train("run", "--resume"));
  EXPECT_NE(trained.err.find("experiment.toml: nothing to resume; starts anew\n"),
            std::string::npos)
      << trained.err;
  EXPECT_EQ(run(train("run", "--resume")).err.find("nothing to resume"), std::string::npos);
  EXPECT_NE(
      run("certify " + path("run") + " --resume").err.find("certificates.tsv: nothing to resume"),
      std::string::npos);
}

TEST_F(AdviceTest, ATableThatExistsIsResumedByThePrintedCommand) {
  ASSERT_EQ(run(train("run")).status, 0);
  const std::string certify = "certify " + path("run") + " --limit 3";
  ASSERT_EQ(run(certify).status, 0);
  const Outcome exists = run(certify);
  expect_refused(exists, "exists; continue it with `");
  EXPECT_EQ(command_in(exists.err), std::string(FEDSMOOTH_PROGRAM) + " " + certify + " --resume");
  EXPECT_EQ(follow(exists).status, 0);
}

TEST_F(AdviceTest, ATableOfOtherOptionsIsNotSaidToBeResumable) {
  ASSERT_EQ(run(train("run")).status, 0);
  const std::string certify = "certify " + path("run") + " --limit 3";
  ASSERT_EQ(run(certify).status, 0);
  const Outcome other = run(certify + " --n 100");
  expect_refused(other, "differs in n: 200 there, 100 here; choose another --out, or delete it");
  EXPECT_EQ(other.err.find("--resume"), std::string::npos) << other.err;
  EXPECT_EQ(run(certify + " --n 100 --out " + path("other.tsv")).status, 0);
  fs::remove(path("run/certificates.tsv"));
  EXPECT_EQ(run(certify + " --n 100").status, 0);
  write_file(path("notes.tsv"), "mine\n");
  expect_refused(run(certify + " --out " + path("notes.tsv")),
                 "notes.tsv: exists; choose another --out");
}

// Nine images in ten have the same label, and nothing in an image tells its label.
TEST_F(AdviceTest, WarnsOfANetworkWithOneAnswer) {
  for (const std::string split : {"train", "test"}) {
    const Dataset shapes = make_shapes(Split::kTrain, 40, 0);
    for (int64_t i = 0; i < 40; ++i) {
      const std::string label = i % 10 == 0 ? "rare" : "often";
      write_png(shapes.images[i],
                "skewed/" + split + "/" + label + "/" + std::to_string(i) + ".png");
    }
  }
  const std::string skewed =
      " --data.root=" + path("skewed") + " --partition.kind=iid --train.method=gaussian";
  const Outcome done = run(train("run", skewed + " --train.rounds=10 --train.local.batch=10"));
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_NE(done.err.find("warning: the network answers \"often\" for all images"),
            std::string::npos)
      << done.err;
}

}  // namespace
}  // namespace fedsmooth
