// --dry-run of train and certify: what it would take, and nothing done.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/certify_program.h"
#include "tests/data/archives.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class DryRunTest : public CertifyProgramTest {
 protected:
  // Written by a command, not by who runs it.
  bool wrote() const {
    return fs::exists(path("model.certificates.tsv")) || fs::exists(path("a.tsv")) ||
           fs::exists(path("a.json")) || fs::exists(path("run"));
  }
};

TEST_F(DryRunTest, CertifyCountsItsVotes) {
  const std::string out = " --out " + path("a.tsv");
  const Outcome done = run("--json " + certify("--dry-run --n0 50 --threads 1" + out));
  ASSERT_EQ(done.status, 0) << done.err;
  const auto found = nlohmann::json::parse(done.out);
  EXPECT_EQ(found["count"], 20 * 1050);
  EXPECT_EQ(found["at_most"], false);
  EXPECT_GT(found["bytes"], 1'000'000);
  EXPECT_EQ(found["device_bytes"], 0);
  const double seconds = found["seconds"], per_second = found["per_second"];
  EXPECT_NEAR(seconds * per_second, 20 * 1050, 1);
  const Outcome radii = run(certify("--dry-run --radii 0.1"));
  EXPECT_NE(radii.out.find("at most 22000 votes"), std::string::npos) << radii.out;
  EXPECT_NE(radii.out.find("nothing was started"), std::string::npos);
  EXPECT_FALSE(wrote());
  expect_refused(run(certify("--dry-run --n 9")), "at least 10");
}

TEST_F(DryRunTest, TrainCountsItsSteps) {
  write_file(path("e.toml"),
             "[data]\nname = \"shapes\"\n[model]\nname = \"small\"\n[partition]\nclients = 4\n"
             "samples_per_client = 20\n[train]\nrounds = 7\nclients_per_round = 3\n"
             "[train.local]\nsteps = 5\nbatch = 4\n");
  const Outcome done =
      run("--json train " + path("e.toml") + " --device cpu --dry-run --out " + path("run"));
  ASSERT_EQ(done.status, 0) << done.err;
  const auto found = nlohmann::json::parse(done.out);
  EXPECT_EQ(found["count"], 7 * 3 * 5);
  EXPECT_EQ(found["device"], "cpu");
  EXPECT_GT(found["seconds"], 0);
  EXPECT_FALSE(wrote());
  const std::string median =
      "train " + path("e.toml") + " --device cpu --dry-run --aggregate.kind=median";
  const Outcome kept = run(median);
  EXPECT_NE(kept.out.find("whose weights are kept: "), std::string::npos) << kept.out;
  expect_refused(run(median + " --train.clients_per_round=4000000"),
                 "the weights of all clients of a round take ");
  expect_refused(
      run("train " + path("e.toml") + " --dry-run --data.name=cifar10 --data.root=" + path("none")),
      "none");
}

// A normalisation of one channel is refused for the usual images.
TEST_F(DryRunTest, TrainTriesImagesOfTheExperimentsKind) {
  write_file(path("grey/train-images-idx3-ubyte"), make_idx({20, 32, 32}, std::string(20480, 7)));
  write_file(path("grey/train-labels-idx1-ubyte"),
             make_idx({20}, std::string("\0\1\2\3\4", 5) + std::string("\0\1\2\3\4", 5) +
                                std::string(10, '\1')));
  write_file(path("e.toml"),
             "[data]\nname = \"idx\"\n[model]\nname = \"small\"\nmean = [0.13]\nsd = [0.31]\n"
             "[partition]\nclients = 2\nsamples_per_client = 10\n[train]\nclients_per_round = 1\n"
             "[train.local]\nsteps = 1\nbatch = 2\n");
  const std::string dry_run = "train " + path("e.toml") + " --dry-run --data.root=" + path("grey");
  const Outcome done = run(dry_run);
  EXPECT_EQ(done.status, 0) << done.err;
  // It counts the labels.
  EXPECT_EQ(run(dry_run + " --train.local.calibrate=true").status, 0);
}

}  // namespace
}  // namespace fedsmooth
