// partition, as a user runs it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fedsmooth/records/clients.h"
#include "tests/cli/program.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class PartitionCommandTest : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    write_file(path("e.toml"),
               "[partition]\nclients = 50\nsamples_per_client = 10\ngamma = 0.5\n"
               "[model]\nname = 'small'\n");
    tiny_data_ = write_tiny_data();
  }

  std::string partition(const std::string& more = "") const {
    return "partition " + path("e.toml") + tiny_data_ + more;
  }

  std::string tiny_data_;
};

size_t lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

TEST_F(PartitionCommandTest, PrintsATableThatFitsATerminal) {
  const Outcome done = run(partition());
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(lines(done.out), 1 + 20 + 3 + 1U) << done.out;  // names, clients, summaries, a note
  for (const std::string word : {"disc", "triangle", "mean", "least", "most", "20 of 50 clients"}) {
    EXPECT_NE(done.out.find(word), std::string::npos) << word;
  }
  const Outcome few = run(partition("--partition.clients=3"));
  EXPECT_EQ(lines(few.out), 1 + 3 + 3U) << few.out;
}

TEST_F(PartitionCommandTest, ARunFolderMeansItsOwnExperiment) {
  fs::create_directories(path("run"));
  write_file(path("run/experiment.toml"), read_file(path("e.toml")));
  const Outcome of_run = run("partition " + path("run") + tiny_data_);
  ASSERT_EQ(of_run.status, 0) << of_run.err;
  EXPECT_EQ(of_run.out, run(partition()).out);
  EXPECT_EQ(run("show " + path("run")).out, run("show " + path("e.toml")).out);
  for (const std::string command : {"partition ", "show "}) {
    expect_refused(run(command + path("data")), "data: no run here; give an experiment file or");
  }
}

TEST_F(PartitionCommandTest, JsonHasEveryClient) {
  const Outcome done = run(partition("--json"));
  ASSERT_EQ(done.status, 0) << done.err;
  const auto found = nlohmann::json::parse(done.out);
  EXPECT_EQ(found["clients"], 50);
  EXPECT_EQ(found["classes"].size(), 10U);
  ASSERT_EQ(found["rows"].size(), 50U);
  for (const auto& row : found["rows"]) {
    EXPECT_EQ(row["images"], 10);
    const auto labels = row["labels"].get<std::vector<int64_t>>();
    EXPECT_EQ(*std::max_element(labels.begin(), labels.end()), 5);
  }
  const auto many = nlohmann::json::parse(run(partition("--json --partition.clients=100000")).out);
  EXPECT_EQ(many["clients"], 100000);
  ASSERT_EQ(many["rows"].size(), 1000U);
  EXPECT_EQ(many["rows"][7]["client"], 700);
}

TEST_F(PartitionCommandTest, IsWhatTrainWrites) {
  ASSERT_EQ(run(partition("--out " + path("clients.tsv"))).status, 0);
  ASSERT_EQ(run("train " + path("e.toml") + tiny_data_ + "--train.rounds=1 --out " + path("run") +
                " --train.clients_per_round=1 --train.local.steps=1")
                .status,
            0);
  EXPECT_EQ(read_file(path("clients.tsv")), read_file(path("run/clients.tsv")));
}

TEST_F(PartitionCommandTest, DrawsAFigure) {
  if (std::system("command -v gnuplot >/dev/null") != 0) GTEST_SKIP() << "no gnuplot";
  for (const std::string figure : {"f.svg", "f.pdf", "f.png"}) {
    EXPECT_EQ(run(partition("--out " + path(figure))).status, 0);
    EXPECT_GT(fs::file_size(path(figure)), 1000U);
  }
}

TEST_F(PartitionCommandTest, RefusesTheUsersMistakes) {
  expect_refused(run(partition("--out " + path("f.bmp"))), ".bmp");
  expect_refused(run(partition("--partition.gama=1")), "did you mean --partition.gamma?");
  expect_refused(run(partition("--partition.samples_per_client=61")), "there are 60");
  expect_refused(run("partition " + path("none.toml")), "no such file");
}

}  // namespace
}  // namespace fedsmooth
