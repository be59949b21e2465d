// certify on many ranks: the rows of one process, killed, resumed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fedsmooth/records/certificate_file.h"
#include "tests/cli/ranks.h"
#include "tests/member_models.h"
#include "tests/table_rows.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class CertifyRanksTest : public RanksTest {
 protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(std::system((std::string(FEDSMOOTH_NEAREST_MEAN) + " " + model()).c_str()), 0);
    forget_classes(model());
  }
  static void TearDownTestSuite() { fs::remove(model()); }
  static std::string model() {
    return fs::temp_directory_path() / fmt::format("fedsmooth_ranks_{}.safetensors", ::getpid());
  }

  std::string certify(const std::string& table, const std::string& more = "") const {
    return "certify " + model() + data_ + "--every 1 --threads 1 --n 500 --out " + path(table) +
           " " + more;
  }

  // Rows without their times.
  std::vector<std::string> rows(const std::string& table) const {
    return rows_without_times(path(table));
  }
};

// Kills take long.
class SlowCertifyRanksTest : public CertifyRanksTest {};

TEST_F(CertifyRanksTest, AnyNumberWritesTheSameRows) {
  ASSERT_EQ(run(certify("one.tsv")).status, 0);
  for (const int count : {2, 3, 4}) {
    const std::string table = "ranks" + std::to_string(count) + ".tsv";
    const Outcome done = run_ranks(count, certify(table));
    ASSERT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(rows(table), rows("one.tsv"));
  }
  // More ranks than images.
  ASSERT_EQ(run_ranks(4, certify("few.tsv", "--limit 2")).status, 0);
  EXPECT_EQ(rows("few.tsv").size(), 2U);
}

TEST_F(CertifyRanksTest, AnyNumberLatchesTheSameRadii) {
  const std::string radii = "--n 5000 --limit 70 --radii 0.1,0.25 ";
  ASSERT_EQ(run(certify("one.tsv", radii)).status, 0);
  const Outcome done = run_ranks(3, certify("ranks.tsv", radii));
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(rows("ranks.tsv"), rows("one.tsv"));
  // More votes for those that need them.
  const std::string more = "--n 9000 --limit 70 --radii 0.1,0.25 --resume";
  ASSERT_EQ(run(certify("one.tsv", more)).status, 0);
  ASSERT_EQ(run_ranks(3, certify("ranks.tsv", more)).status, 0);
  EXPECT_EQ(rows("ranks.tsv"), rows("one.tsv"));
}

TEST_F(CertifyRanksTest, AnyNumberCertifiesSeveralModelsAsOne) {
  write_member(load_model(model()), path("other.safetensors"), 1, 0.05f);
  const std::string with = "--limit 40 --with " + path("other.safetensors");
  ASSERT_EQ(run(certify("one.tsv", with)).status, 0);
  const Outcome done = run_ranks(3, certify("ranks.tsv", with));
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(rows("ranks.tsv"), rows("one.tsv"));
  EXPECT_EQ(read_identity(path("ranks.tsv")).members->size(), 2U);
  expect_told_once(run_ranks(2, certify("b.tsv", "--with " + model())), "a member is given once");
}

// The ranks share one GPU.
TEST_F(CertifyRanksTest, OnAGpuAnyNumberLatchesTheSameRadii) {
  const std::string gpu = "--device cuda --n 100000 --radii 0.1,0.25 ";
  if (run(certify("one.tsv", gpu)).status != 0) GTEST_SKIP() << "no CUDA device";
  const Outcome done = run_ranks(3, certify("ranks.tsv", gpu));
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(rows("ranks.tsv"), rows("one.tsv"));
}

TEST_F(SlowCertifyRanksTest, ContinuesAfterAKilledRankOnAnyNumber) {
  const std::string longer = "--n 40000 --resume";
  ASSERT_EQ(run(certify("whole.tsv", longer)).status, 0);
  int64_t before = 0;
  for (const int victim : {1, 0}) {
    const pid_t job = start_ranks(2 + victim, certify("killed.tsv", longer));
    wait_for_rows(path("killed.tsv"), before + 1);
    kill_rank(victim, SIGKILL);
    EXPECT_NE(finish(job).status, 0);
    before = std::ssize(rows("killed.tsv"));
  }
  const pid_t job = start_ranks(2, certify("killed.tsv", longer));
  wait_for_rows(path("killed.tsv"), before + 1);
  ::kill(job, SIGUSR1);
  const Outcome stopped = finish(job);
  EXPECT_EQ(stopped.status, 130) << stopped.err;
  ASSERT_EQ(run(certify("killed.tsv", longer)).status, 0);
  EXPECT_EQ(rows("killed.tsv"), rows("whole.tsv"));
}

TEST_F(SlowCertifyRanksTest, AHungRankIsNamed) {
  const pid_t job = start_ranks(3, certify("hung.tsv", "--n 20000 --rank-timeout 3"));
  wait_for_rows(path("hung.tsv"), 1);
  kill_rank(2, SIGSTOP);
  expect_told_once(finish(job), "nothing heard from rank 2 for 3 s");
}

TEST_F(CertifyRanksTest, TellsTheUsersMistakesOnce) {
  ASSERT_EQ(run(certify("a.tsv")).status, 0);
  expect_told_once(run_ranks(2, certify("a.tsv")), "exists");
  expect_told_once(run_ranks(2, certify("b.tsv", "--alpha 1")), "--certify.alpha=1");
  EXPECT_FALSE(fs::exists(path("b.tsv")));
}

TEST_F(CertifyRanksTest, RefusesARankWithOtherData) {
  fs::create_directory(path("other"));
  fs::copy(path("data"), path("other/data"), fs::copy_options::recursive);
  const fs::path test = path("other/data/test");
  fs::remove_all(fs::directory_iterator(test)->path());
  const auto in_folder = [&](const std::string& folder) {
    return ranks_of("env -C " + folder + " " + FEDSMOOTH_PROGRAM, 1,
                    certify("b.tsv", "--data.root=data"));
  };
  expect_told_once(finish(start_ranks(in_folder(folder_) + " : " + in_folder(path("other")))),
                   "rank 1: ");
  EXPECT_FALSE(fs::exists(path("b.tsv")));
}

}  // namespace
}  // namespace fedsmooth
