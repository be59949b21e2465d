// sweep, as a user runs it: killed, interrupted, resumed, with experiments that fail.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fedsmooth/base/sha256.h"
#include "fedsmooth/records/certificate_file.h"
#include "fedsmooth/records/rounds.h"
#include "tests/cli/program.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class SweepCommandTest : public ProgramTest {
 protected:
  void SetUp() override {
    if (std::system("command -v gnuplot >/dev/null") != 0) GTEST_SKIP() << "no gnuplot";
    ProgramTest::SetUp();
    tiny_data_ = write_tiny_data();
    write_file(path("e.toml"),
               "[data]\nname = 'image-folder'\nroot = '" + path("data") +
                   "'\n[partition]\nclients = 4\nsamples_per_client = 10\n[model]\nname = 'small'\n"
                   "[train]\nrounds = 6\nclients_per_round = 2\ncheckpoint_every = 2\n"
                   "[train.local]\nsteps = 2\nbatch = 2\n[certify]\nn0 = 10\nn = 200\nevery = 1\n"
                   "[sweep]\nseed = [1, 2, 3]\n");
  }

  std::string sweep(const std::string& more = "") const {
    return "sweep " + path("e.toml") + " --out " + path("all") + " " + more;
  }

  // So many votes that a run's certificates come in two waves, between which it can be killed.
  void certify_in_two_waves() const {
    std::string text = read_file(path("e.toml"));
    text.replace(text.find("n = 200"), 7, "n = 2500");
    write_file(path("e.toml"), text);
  }

  // What a run gives, without the times.
  std::string result(const std::string& run) const {
    std::string found = sha256(read_file(path(run + "/model.safetensors")));
    for (CertificateRow row : read_certificates(path(run + "/certificates.tsv"))) {
      row.seconds = 0;
      found += format_row(row);
    }
    return found;
  }

  std::string results(const std::string& out) const {
    return result(out + "/e-seed1") + result(out + "/e-seed2") + result(out + "/e-seed3");
  }

  std::string tiny_data_;
};

// What is killed, or done twice to compare.
class SlowSweepCommandTest : public SweepCommandTest {};

TEST_F(SweepCommandTest, TrainsCertifiesAndReports) {
  const Outcome done = run(sweep());
  ASSERT_EQ(done.status, 0) << done.err;
  for (const std::string seed : {"1", "2", "3"}) {
    const std::string run = path("all/e-seed" + seed);
    EXPECT_TRUE(fs::exists(run + "/DONE"));
    EXPECT_EQ(read_certificates(run + "/certificates.tsv").size(), 10U);
    EXPECT_NE(done.out.find("e-seed" + seed), std::string::npos) << done.out;
  }
  EXPECT_NE(done.out.find(path("all/report.html") + "\n"), std::string::npos) << done.out;
  EXPECT_NE(read_file(path("all/report.html")).find("e-seed3"), std::string::npos);
}

TEST_F(SweepCommandTest, TrainsOnceWhatIsOnlyCertifiedDifferently) {
  ASSERT_EQ(run(sweep("--quiet --seed=1")).status, 0);
  std::string text = read_file(path("e.toml"));
  text.replace(text.find("[sweep]"), std::string::npos, "[sweep]\n'certify.sigma' = [0.25, 0.5]\n");
  write_file(path("e.toml"), text);
  const Outcome done = run(sweep("--quiet --seed=1"));
  ASSERT_EQ(done.status, 0) << done.err;
  const std::string first = path("all/e-sigma0.25"), second = path("all/e-sigma0.5");
  // The times too, which no second training would repeat.
  for (const std::string file :
       {"/rounds.tsv", "/provenance.json", "/clients.tsv", "/model.safetensors"}) {
    EXPECT_EQ(sha256(read_file(first + file)), sha256(read_file(second + file))) << file;
  }
  EXPECT_EQ(sha256(read_file(first + "/model.safetensors")),
            sha256(read_file(path("all/e-seed1/model.safetensors"))));
  EXPECT_EQ(read_certificates(first + "/certificates.tsv")[0].sigma, 0.25);
  EXPECT_EQ(read_certificates(second + "/certificates.tsv")[0].sigma, 0.5);
}

TEST_F(SweepCommandTest, RunsOfSeveralGroupsAreTrainedAndTakenOver) {
  std::string text = read_file(path("e.toml"));
  text.replace(text.find("seed = [1, 2, 3]"), 16, "'certify.n' = [100, 200]");
  write_file(path("e.toml"), text);
  const std::string groups = "--groups.count=2 --train.rounds=2 --partition.clients=8";
  const Outcome done = run(sweep(groups + " --json"));
  ASSERT_EQ(done.status, 0) << done.err;
  const auto summary = nlohmann::json::parse(done.out), runs = summary["runs"];
  ASSERT_EQ(summary["results"].size(), 2U);
  for (const auto& result : summary["results"]) {
    EXPECT_EQ(result["malicious"], 0);
    ASSERT_EQ(result["against_malicious"].size(), 2U);  // two groups withstand one client
    EXPECT_EQ(result["against_malicious"][1]["malicious"], 1);
    // Both count the same images, for the same votes.
    EXPECT_EQ(result["against_malicious"][0]["certified_accuracy"][0]["certified_accuracy"],
              result["certified_accuracy"][0]["certified_accuracy"]);
  }
  ASSERT_EQ(runs.size(), 2U);
  std::vector<std::string> provenances;
  for (const std::string run : runs) {
    provenances.push_back(read_file(fs::path(run) / "provenance.json"));
    for (const CertificateRow& row : read_certificates(fs::path(run) / "certificates.tsv")) {
      EXPECT_EQ(row.malicious, 0);
    }
  }
  EXPECT_EQ(provenances[0], provenances[1]);  // trained once
  EXPECT_NE(run(sweep(groups)).err.find("done already"), std::string::npos);
}

TEST_F(SweepCommandTest, TakesNoTrainingFromAnotherExperimentsFolder) {
  ASSERT_EQ(run(sweep("--quiet --seed=1")).status, 0);
  fs::rename(path("all/e-seed1"), path("all/e-sigma0.25"));
  std::string text = read_file(path("e.toml"));
  text.replace(text.find("[sweep]"), std::string::npos, "[sweep]\n'certify.sigma' = [0.25, 0.5]\n");
  write_file(path("e.toml"), text);
  const Outcome done = run(sweep("--quiet --seed=2"));
  EXPECT_EQ(done.status, 2);
  EXPECT_NE(done.err.find("e-sigma0.25: is another experiment: seed is 1 there"), std::string::npos)
      << done.err;
  EXPECT_NE(done.err.find("sweep: 1 of 2 experiments failed"), std::string::npos) << done.err;
  EXPECT_EQ(read_certificates(path("all/e-sigma0.5/certificates.tsv")).size(), 10U);
}

// Three groups, which differ in their local steps, and a training that two experiments share.
TEST_F(SlowSweepCommandTest, DoesSeveralGroupsAtTheSameTime) {
  std::string text = read_file(path("e.toml"));
  text.replace(text.find("[sweep]"), std::string::npos,
               "[[sweep]]\n'train.local.steps' = [1, 2, 3]\nseed = [1, 2]\n"
               "[[sweep]]\nseed = [1]\n'certify.sigma' = [0.5]\n");
  write_file(path("e.toml"), text);
  const Outcome together = run(sweep("--at-once 3"));
  ASSERT_EQ(together.status, 0) << together.err;
  ASSERT_EQ(run("sweep " + path("e.toml") + " --quiet --out " + path("alone")).status, 0);
  int64_t runs = 0;
  for (const auto& entry : fs::directory_iterator(path("alone"))) {
    if (!entry.is_directory()) continue;
    const std::string name = entry.path().filename();
    EXPECT_NE(together.err.find(name + " ("), std::string::npos) << together.err;
    EXPECT_EQ(result("all/" + name), result("alone/" + name)) << name;
    ++runs;
  }
  EXPECT_EQ(runs, 7);
  EXPECT_EQ(read_file(path("all/e-seed1-sigma0.5/rounds.tsv")),
            read_file(path("all/e-steps2-seed1/rounds.tsv")));
}

TEST_F(SlowSweepCommandTest, SeveralGroupsAtTheSameTimeContinueAfterKill9) {
  certify_in_two_waves();
  ASSERT_EQ(run("sweep " + path("e.toml") + " --out " + path("whole")).status, 0);
  std::string text = read_file(path("e.toml"));
  write_file(path("e.toml"), text + "'train.local.steps' = [2, 3]\n");
  for (const auto& [table, rows] : {std::pair("all/e-seed1-steps3/rounds.tsv", int64_t{3}),
                                    std::pair("all/e-seed2-steps2/certificates.tsv", int64_t{2})}) {
    const pid_t child = start(sweep("--at-once 2"));
    wait_for_rows(path(table), rows);
    ::kill(child, SIGKILL);
    EXPECT_EQ(finish(child).status, -SIGKILL);
  }
  ASSERT_EQ(run(sweep("--at-once 2")).status, 0);
  for (const std::string seed : {"1", "2", "3"}) {
    EXPECT_EQ(result("all/e-seed" + seed + "-steps2"), result("whole/e-seed" + seed));
  }
}

TEST_F(SweepCommandTest, RefusesFiguresThatCannotBeReadBeforeItTrains) {
  write_file(path("f/e.toml"), read_file(path("e.toml")));
  write_file(path("f/figures.toml"), "[[figure]]\nname = 3\n");
  const Outcome refused = run("sweep " + path("f") + " --out " + path("all"));
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("figures.toml:1: "), std::string::npos) << refused.err;
  EXPECT_FALSE(fs::exists(path("all")));
}

TEST_F(SweepCommandTest, ReportsOnTheOthersIfAFolderCannotBeRead) {
  write_file(path("all/other/certificates.tsv"), "not\tours\n1\t2\n");
  const Outcome done = run(sweep());
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_NE(done.err.find("other/certificates.tsv"), std::string::npos) << done.err;
  EXPECT_NE(read_file(path("all/report.html")).find("e-seed3"), std::string::npos);
}

TEST_F(SweepCommandTest, SkipsWhatIsDone) {
  ASSERT_EQ(run(sweep("--quiet")).status, 0);
  const std::vector<std::string> files = {"/model.safetensors", "/certificates.tsv", "/rounds.tsv",
                                          "/clients.tsv", "/DONE"};
  std::vector<fs::file_time_type> before;
  for (const std::string& file : files) {
    before.push_back(fs::last_write_time(path("all/e-seed2" + file)));
  }
  const Outcome again = run(sweep("--json"));
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_NE(again.err.find("e-seed2 (2 of 3): done already"), std::string::npos) << again.err;
  EXPECT_EQ(nlohmann::json::parse(again.out)["runs"].size(), 3U);
  for (size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(fs::last_write_time(path("all/e-seed2" + files[i])), before[i]) << files[i];
  }
}

TEST_F(SlowSweepCommandTest, ContinuesAfterKill9) {
  certify_in_two_waves();
  ASSERT_EQ(run("sweep " + path("e.toml") + " --out " + path("whole")).status, 0);
  const std::vector<std::pair<std::string, int64_t>> moments = {{"all/e-seed1/rounds.tsv", 3},
                                                                {"all/e-seed2/certificates.tsv", 2},
                                                                {"all/e-seed3/rounds.tsv", 1}};
  for (const auto& [table, rows] : moments) {
    const pid_t child = start(sweep());
    wait_for_rows(path(table), rows);
    ::kill(child, SIGKILL);
    EXPECT_EQ(finish(child).status, -SIGKILL);
  }
  ASSERT_EQ(run(sweep()).status, 0);
  EXPECT_EQ(results("all"), results("whole"));
}

TEST_F(SlowSweepCommandTest, InterruptedItSavesAndContinues) {
  certify_in_two_waves();
  for (const auto& [table, signal] : {std::pair("all/e-seed1/rounds.tsv", SIGINT),
                                      std::pair("all/e-seed2/certificates.tsv", SIGTERM)}) {
    const pid_t child = start(sweep());
    wait_for_rows(path(table), 1);
    ::kill(child, signal);
    const Outcome stopped = finish(child);
    EXPECT_EQ(stopped.status, 130) << stopped.err;
    EXPECT_NE(stopped.err.find("continue with `" + std::string(FEDSMOOTH_PROGRAM) + " sweep "),
              std::string::npos)
        << stopped.err;
  }
  EXPECT_FALSE(fs::exists(path("all/report.html")));
  ASSERT_EQ(run(sweep()).status, 0);
  EXPECT_TRUE(fs::exists(path("all/report.html")));
}

TEST_F(SweepCommandTest, DryRunCountsWhatIsLeft) {
  const Outcome done = run("--json " + sweep("--dry-run"));
  ASSERT_EQ(done.status, 0) << done.err;
  const auto found = nlohmann::json::parse(done.out);
  EXPECT_EQ(found["experiments"], 3);
  EXPECT_EQ(found["trainings"], 3);
  EXPECT_EQ(found["rounds"], 18);
  EXPECT_EQ(found["votes"], 3 * 10 * 210);
  EXPECT_GT(found["seconds"], 0);
  // Each network of several groups votes, and is stored.
  const auto groups =
      nlohmann::json::parse(run("--json " + sweep("--dry-run --groups.count=2")).out);
  EXPECT_EQ(groups["votes"], 2 * 3 * 10 * 210);
  EXPECT_GT(groups["disk_bytes"], 1.9 * found["disk_bytes"].get<double>());
  EXPECT_FALSE(fs::exists(path("all")));
  ASSERT_EQ(run(sweep("--quiet --seed=1")).status, 0);
  // Two experiments are left, and one training for both.
  std::string text = read_file(path("e.toml"));
  text.replace(text.find("[sweep]"), std::string::npos,
               "[[sweep]]\nseed = [1, 2]\n[[sweep]]\nseed = [2]\n'certify.sigma' = [0.5]\n");
  write_file(path("e.toml"), text);
  const auto left = nlohmann::json::parse(run("--json " + sweep("--dry-run")).out);
  EXPECT_EQ(left["experiments"], 3);
  EXPECT_EQ(left["trainings"], 1);
  EXPECT_EQ(left["certifications"], 2);
  EXPECT_NE(
      run(sweep("--dry-run")).out.find("left: trainings 1, with 6 rounds; certifications 2, with "),
      std::string::npos);
}

TEST_F(SweepCommandTest, TakesNoRunsFolder) {
  const std::string text = read_file(path("e.toml"));
  write_file(path("one.toml"), text.substr(0, text.find("[sweep]")));
  ASSERT_EQ(run("train " + path("one.toml") + " --out " + path("all")).status, 0);
  expect_refused(run(sweep()), "all: is a run, a sweep needs a folder of its own");
  EXPECT_FALSE(fs::exists(path("all/report.html")));
}

// Both would otherwise be runs/e.
TEST_F(SweepCommandTest, HasAnotherDefaultFolderThanTrain) {
  const Outcome done = finish(
      start_command("env -C " + path("") + " " + FEDSMOOTH_PROGRAM + " sweep e.toml --seed=1"));
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_TRUE(fs::exists(path("runs/e-sweep/e-seed1/DONE")));
  EXPECT_NE(done.err.find("next: open runs/e-sweep/report.html in a browser"), std::string::npos);
}

TEST_F(SweepCommandTest, AFailureDoesNotStopTheOthers) {
  write_file(path("f/a.toml"), read_file(path("e.toml")) +
                                   "'train.local.learning_rate' = [1e30]\n'train.method' = "
                                   "['standard']\n");
  write_file(path("f/b.toml"), "[data]\nname = 'image-folder'\nroot = 'nowhere'\n");
  write_file(path("f/c.toml"), read_file(path("e.toml")));
  write_file(path("f/notes.txt"), "no experiment");
  const Outcome done = run("sweep " + path("f") + " --out " + path("all") + " --quiet --seed=1");
  EXPECT_EQ(done.status, 2);
  EXPECT_NE(done.err.find("a-seed1-learning_rate1e+30-standard: round 1"), std::string::npos);
  EXPECT_NE(done.err.find("\nb: nowhere"), std::string::npos) << done.err;
  EXPECT_NE(done.err.find("\nsweep: 2 of 3 experiments failed\n"), std::string::npos) << done.err;
  // The third line warns that c learned nothing.
  EXPECT_EQ(std::count(done.err.begin(), done.err.end(), '\n'), 4) << done.err;
  EXPECT_FALSE(fs::exists(path("all/b")));
  EXPECT_EQ(read_certificates(path("all/c-seed1/certificates.tsv")).size(), 10U);
  EXPECT_TRUE(fs::exists(path("all/report.html")));
}

TEST_F(SweepCommandTest, OnlyCertifiesWhatIsTrained) {
  ASSERT_EQ(run(sweep("--seed=1")).status, 0);
  fs::remove(path("all/e-seed1/certificates.tsv"));
  const auto before = fs::last_write_time(path("all/e-seed1/model.safetensors"));
  ASSERT_EQ(run(sweep("--seed=1")).status, 0);
  EXPECT_EQ(fs::last_write_time(path("all/e-seed1/model.safetensors")), before);
  EXPECT_EQ(read_certificates(path("all/e-seed1/certificates.tsv")).size(), 10U);
}

TEST_F(SweepCommandTest, SeesThatTheTestImagesAreOthers) {
  ASSERT_EQ(run(sweep("--seed=1")).status, 0);
  EXPECT_NE(run(sweep("--seed=1")).err.find("done already"), std::string::npos);
  const fs::path folder = path("data/test");
  std::vector<fs::path> images;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) images.push_back(entry.path());
  }
  const std::string first = read_file(images.front());
  write_file(images.front(), read_file(images.back()));
  write_file(images.back(), first);
  const Outcome other = run(sweep("--seed=1 --quiet"));
  EXPECT_EQ(other.status, 2);
  EXPECT_NE(other.err.find("of other images or labels, which differs in data_sha256"),
            std::string::npos)
      << other.err;
}

// A table of a fixed number of votes has no field of the identity that the rule adds.
TEST_F(SweepCommandTest, SeesThatTheRuleOfTheVotesIsAnother) {
  ASSERT_EQ(run(sweep("--seed=1")).status, 0);
  const Outcome other = run(sweep("--seed=1 --quiet --certify.radii=[0.1]"));
  EXPECT_EQ(other.status, 2);
  EXPECT_NE(other.err.find("holds another measurement, which differs in beta"), std::string::npos)
      << other.err;
}

TEST_F(SweepCommandTest, LeavesOtherRunsAlone) {
  ASSERT_EQ(run(sweep("--seed=1")).status, 0);
  const std::string before = read_file(path("all/e-seed1/certificates.tsv"));
  const Outcome other = run(sweep("--seed=1 --train.rounds=5 --quiet"));
  EXPECT_EQ(other.status, 2);
  EXPECT_NE(other.err.find("is another experiment: train.rounds is 6 there, 5 here"),
            std::string::npos)
      << other.err;
  EXPECT_EQ(read_file(path("all/e-seed1/certificates.tsv")), before);
  // Certificates that were not made by the experiment's own options.
  fs::remove(path("all/e-seed1/certificates.tsv"));
  ASSERT_EQ(run("certify " + path("all/e-seed1") + " --n 100").status, 0);
  const Outcome differs = run(sweep("--seed=1 --quiet"));
  EXPECT_EQ(differs.status, 2);
  EXPECT_NE(differs.err.find("n: 100 there, 200 here"), std::string::npos) << differs.err;
}

TEST_F(SweepCommandTest, RefusesTheUsersMistakes) {
  fs::create_directories(path("empty"));
  expect_refused(run("sweep " + path("empty")), "no .toml files here");
  expect_refused(run("sweep " + path("none")), "no such file or folder");
  expect_refused(run(sweep("--groups 2")), "--groups: is called --side-by-side now");
  expect_refused(run(sweep("--train.ronds=1")), "did you mean --train.rounds?");
  expect_refused(run(sweep("--seed=x")), "--seed=x");
  expect_refused(run(sweep("--threads=-1")), "--threads");
  write_file(path("f/e.toml"), read_file(path("e.toml")));
  write_file(path("f/e-seed2.toml"), "");
  expect_refused(run("sweep " + path("f") + " --out " + path("all")),
                 "two experiments are called e-seed2");
  EXPECT_FALSE(fs::exists(path("all")));
  for (const std::string command : {"train ", "partition "}) {
    expect_refused(run(command + path("e.toml")), "has a [sweep] of 3 experiments");
  }
  EXPECT_EQ(run("show " + path("e.toml")).out, "e-seed1\ne-seed2\ne-seed3\n");
}

// Every file in experiments/ for a round on a few images.

}  // namespace
}  // namespace fedsmooth
