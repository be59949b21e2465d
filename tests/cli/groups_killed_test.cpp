// train and certify of several groups: killed and resumed, and certified in shards.
#include <gtest/gtest.h>

#include "fedsmooth/base/sha256.h"
#include "fedsmooth/records/certificate_file.h"
#include "fedsmooth/records/run.h"
#include "tests/cli/program.h"
#include "tests/table_rows.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class SlowKilledGroupsTest : public ProgramTest {
 protected:
  static constexpr int64_t kGroups = 3;

  void SetUp() override {
    ProgramTest::SetUp();
    data_ = write_tiny_data();
    write_file(path("e.toml"),
               "[partition]\nkind = \"iid\"\nclients = 9\nsamples_per_client = 20\n"
               "[groups]\ncount = 3\n[model]\nname = \"small\"\n"
               "[train]\nmethod = \"gaussian\"\nrounds = 12\nclients_per_round = 2\n"
               "checkpoint_every = 1\n[train.local]\nsteps = 20\nbatch = 8\n"
               "[certify]\nn = 1000\nevery = 1\nseed = 3\n");
  }

  std::string train(const std::string& name) const {
    return "train " + path("e.toml") + data_ + "--threads 1 --resume --out " + path(name);
  }
  std::string certify(const std::string& table, const std::string& more = "") const {
    return "certify " + path("whole") + data_ + "--threads 1 --resume --out " + path(table) + more;
  }

  // Kills a command once `file` has two rows.
  void start_and_kill(const std::string& command, const std::string& file) {
    const pid_t child = start(command);
    wait_for_rows(path(file), 2);
    ::kill(child, SIGKILL);
    EXPECT_EQ(finish(child).status, -SIGKILL);
  }

  void expect_models_of(const std::string& name, const std::string& other) const {
    for (int64_t g = 1; g <= kGroups; ++g) {
      EXPECT_EQ(sha256(read_file(group_folder(path(name), g) / "model.safetensors")),
                sha256(read_file(group_folder(path(other), g) / "model.safetensors")))
          << g;
    }
    EXPECT_EQ(trained_sha256(path(name)), trained_sha256(path(other)));
  }

  std::vector<std::string> rows(const std::string& table) const {
    return rows_without_times(path(table));
  }

  std::string data_;
};

TEST_F(SlowKilledGroupsTest, TrainsTheSameModelsAndWritesTheSameRows) {
  ASSERT_EQ(run(train("whole")).status, 0);
  start_and_kill(train("killed"), "killed/group-02/rounds.tsv");
  ASSERT_EQ(run(train("killed")).status, 0);
  expect_models_of("killed", "whole");
  // As if the kill had come when the first group was done, the second trained and the third not.
  for (const std::string file : {"DONE", "provenance.json", "group-02/DONE"}) {
    fs::remove(path("killed/" + file));
  }
  fs::remove_all(path("killed/group-03"));
  ASSERT_EQ(run(train("killed")).status, 0);
  expect_models_of("killed", "whole");

  ASSERT_EQ(run(certify("whole.tsv")).status, 0);
  start_and_kill(certify("killed.tsv", " --n 20000"), "killed.tsv");
  ASSERT_EQ(run(certify("killed.tsv", " --n 20000")).status, 0);
  ASSERT_EQ(run(certify("long.tsv", " --n 20000")).status, 0);
  EXPECT_EQ(rows("killed.tsv"), rows("long.tsv"));
  ASSERT_EQ(run(certify("1.tsv", " --shard 1/2")).status, 0);
  ASSERT_EQ(run(certify("2.tsv", " --shard 2/2")).status, 0);
  ASSERT_EQ(
      run("merge " + path("1.tsv") + " " + path("2.tsv") + " --out " + path("merged.tsv")).status,
      0);
  EXPECT_EQ(rows("merged.tsv"), rows("whole.tsv"));
}

}  // namespace
}  // namespace fedsmooth
