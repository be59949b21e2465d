// Every experiment that comes with the program, at a size that takes no time.
#include <gtest/gtest.h>

#include "fedsmooth/records/certificate_file.h"
#include "fedsmooth/records/rounds.h"
#include "fedsmooth/records/run.h"
#include "tests/cli/program.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class SlowExperimentsTest : public ProgramTest {
 protected:
  void SetUp() override {
    if (std::system("command -v gnuplot >/dev/null") != 0) GTEST_SKIP() << "no gnuplot";
    ProgramTest::SetUp();
  }
};

// The rounds of a run, or of its first group.
fs::path first_rounds(const fs::path& run) {
  return (is_run_of_groups(run) ? group_folder(run, 1) : run) / "rounds.tsv";
}

TEST_F(SlowExperimentsTest, OurExperimentsRun) {
  const std::string tiny =
      " --quiet" + write_tiny_data() +
      " --data.held_out=0 "
      "--model.name=small --train.rounds=1 --train.evaluate_every=0"
      " --aggregate.assumed_bad=1"
      " --train.local.steps=1 --train.local.batch=2 --certify.n0=2 --certify.n=20"
      " --certify.limit=1 --certify.every=1";
  struct Folder {
    std::string name;
    int64_t runs, cohort = 5;
    std::string more = {};
  };
  const std::vector<Folder> folders = {{"quickstart", 2},
                                       {"paper", 88},
                                       {"readings", 11},
                                       {"recipe", 36},
                                       {"resnet", 10},
                                       {"zoo", 30},
                                       {"federations", 123},
                                       {"frontier", 6, /*cohort=*/20},
                                       {"groups", 7, 5, " --groups.count=2"}};
  for (const auto& [folder, count, cohort, more] : folders) {
    const std::string clients = " --train.clients_per_round=" + std::to_string(cohort) +
                                " --partition.clients=" + std::to_string(cohort + 1) +
                                " --partition.samples_per_client=" + std::to_string(50 / cohort);
    const Outcome done = run("sweep " + std::string(FEDSMOOTH_SOURCE) + "/experiments/" + folder +
                             " --out " + path(folder) + tiny + clients + more);
    EXPECT_EQ(done.status, 0) << done.err;
    int64_t certified = 0;
    for (const auto& entry : fs::directory_iterator(path(folder))) {
      if (!entry.is_directory() || entry.path().filename() == "figures") continue;
      EXPECT_EQ(read_rounds(first_rounds(entry.path())).size(), 1U) << entry.path();
      certified += read_certificates(entry.path() / "certificates.tsv").size() == 1;
    }
    EXPECT_EQ(certified, count) << folder;
  }
  for (const auto& entry : fs::directory_iterator(FEDSMOOTH_SOURCE "/experiments")) {
    EXPECT_TRUE(fs::exists(path(entry.path().filename()))) << entry.path() << " was not run";
  }
}

}  // namespace
}  // namespace fedsmooth
