// What version 0.1 wrote: golden-0.1 is a run folder of its program, without the weights.
#include <gtest/gtest.h>

#include "fedsmooth/base/file.h"
#include "fedsmooth/fedsmooth.h"
#include "fedsmooth/model/safetensors.h"
#include "tests/jobs/job_folder.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class Version01Test : public JobTest {
 protected:
  void SetUp() override {
    JobTest::SetUp();
    fs::copy(fs::path(FEDSMOOTH_SOURCE) / "tests/jobs/golden-0.1", path("run"));
  }
};

TEST_F(Version01Test, ItsRunFolderIsRead) {
  const Experiment e = read_experiment(path("run") / "experiment.toml");
  EXPECT_EQ(e.train.rounds, 3);
  EXPECT_EQ(e.partition.clients, 20);
  const RunRecord run = jobs::load_run(path("run"));
  EXPECT_EQ(run.rows.size(), 20U);
  EXPECT_EQ(run.rounds.size(), 3U);
  EXPECT_EQ(run.clients.size(), 20U);
  EXPECT_EQ(run.attacks.size(), 40U);
  EXPECT_EQ(run.class_names.size(), 10U);
  EXPECT_EQ(run.rows[0].base, "cpu/fp32/fastx192/AVX2/OpenBLAS-0.3.21-Zen/torch-1.13.0");
  EXPECT_FALSE(run.rows[0].shared);
}

TEST_F(Version01Test, ItsTablesAreReportedAndRecertified) {
  const fs::path again = jobs::recertify({.table = path("run").string(), .alpha = 0.01});
  EXPECT_EQ(jobs::load_run(again).rows.size(), 20U);
  jobs::report({path("run").string()}, path("page.html"), context_);
  EXPECT_TRUE(fs::exists(path("page.html")));
}

// Up to 0.2 images could share their draws (--noise-bank).
TEST_F(Version01Test, TablesWithSharedDrawsAreReadReportedAndRecertified) {
  for (const char* file : {"certificates.tsv", "certificates.json"}) {
    std::string text = read_file(path("run") / file);
    const std::string base = "torch-1.13.0", flag = "\"noise_bank\": false";
    for (size_t at = 0; (at = text.find(base, at)) != std::string::npos; at += base.size()) {
      text.insert(at + base.size(), "/noise-bank");
    }
    if (const size_t at = text.find(flag); at != std::string::npos) {
      text.replace(at, flag.size(), "\"noise_bank\": true");
    }
    write_file(path("run") / file, text);
  }
  EXPECT_TRUE(jobs::load_run(path("run")).rows[0].shared);
  jobs::report({path("run").string()}, path("page.html"), context_);
  EXPECT_NE(read_file(path("page.html")).find("the same for all images"), std::string::npos);
  const fs::path again = jobs::recertify({.table = path("run").string(), .alpha = 0.01});
  const RunRecord recertified = jobs::load_run(again);
  ASSERT_EQ(recertified.rows.size(), 20U);
  EXPECT_TRUE(recertified.rows[0].shared);
  EXPECT_EQ(recertified.rows[0].base, "cpu/fp32/fastx192/AVX2/OpenBLAS-0.3.21-Zen/torch-1.13.0");
}

TEST_F(Version01Test, ItsCheckpointsAreRefusedWithTheReason) {
  const Experiment e = read_experiment(path("run") / "experiment.toml");
  Safetensors checkpoint;
  checkpoint.metadata = {
      {"arithmetic", "AVX2/OpenBLAS-0.3.21-Zen/torch-1.13.0"}, {"device", "cpu"}, {"round", "2"}};
  fs::create_directories(path("run") / "checkpoint");
  write_file(path("run") / "checkpoint" / "state.safetensors", format_safetensors(checkpoint));
  expect_error(
      [&] {
        jobs::train({e, path("run"), /*resume=*/true}, context_);
      },
      "was made with the arithmetic AVX2/OpenBLAS-0.3.21-Zen/torch-1.13.0");
}

}  // namespace
}  // namespace fedsmooth
