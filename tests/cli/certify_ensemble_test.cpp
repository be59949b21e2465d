// certify, predict and verify with several models as one, as a user runs them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fedsmooth/records/certificate_file.h"
#include "tests/cli/certify_program.h"
#include "tests/member_models.h"
#include "tests/table_rows.h"

namespace fedsmooth {
namespace {

// Three models, and the command on them.
class EnsembleCommandTest : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    write_nearest_mean(file("a"));
    const Model model = load_model(file("a"));
    write_member(model, file("b"), 1, 0.05f);
    write_member(model, file("c"), 2, 0.05f);
  }

  std::string file(const std::string& name) const { return path(name + ".safetensors"); }
  std::string certify(const std::string& models, const std::string& more) const {
    return "certify " + models + " --data.name=shapes --every 100 --n 1000 " + more;
  }
  std::string of_three() const { return file("a") + " --with " + file("b") + " " + file("c"); }

  std::vector<std::string> rows(const std::string& table) const {
    return rows_without_times(path(table));
  }
};

class SlowEnsembleCommandTest : public EnsembleCommandTest {};

TEST_F(EnsembleCommandTest, TakesModelsTogetherOrOneByOne) {
  ASSERT_EQ(run(certify(of_three(), "--out " + path("a.tsv"))).status, 0);
  const Outcome done =
      run("certify --data.name=shapes --every 100 --n 1000 --out " + path("b.tsv") +
          " --with=" + file("c") + " --with=" + file("b") + " --threads 2 " + file("a"));
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(rows("a.tsv"), rows("b.tsv"));
  EXPECT_EQ(read_identity(path("a.tsv")).members->size(), 3U);
  EXPECT_EQ(run("verify " + path("a.tsv") + " --images 2").status, 0);
  EXPECT_EQ(run("verify " + path("a.tsv") + " --images 2 --model " + of_three()).status, 0);
  EXPECT_EQ(run("compare " + path("a.tsv") + " " + path("b.tsv")).status, 0);
  const Outcome page = run("report " + path("a.tsv") + " --out " + path("r.html"));
  EXPECT_EQ(page.status, 0) << page.err;
}

TEST_F(EnsembleCommandTest, PredictTakesAModelPerOption) {
  const Outcome done = run("predict " + file("a") + " --with " + file("b") + " 0 1 --with " +
                           file("c") + " --data.name=shapes --json --seed=1");
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(nlohmann::json::parse(done.out).size(), 2U);
}

// An image file says nothing of classes: only the models do.
TEST_F(EnsembleCommandTest, PredictRefusesAnotherNumberOfClasses) {
  Model few = load_model(file("a"));
  few.network.layers.back().outputs = 4;
  few.class_names.clear();
  for (Array& w : few.weights) w = w.part(0, 4);
  write_file(file("few"), format_model(few));
  write_png(make_shapes(Split::kTest, 1, 0).images[0], "image.png");
  const std::string predict = "predict " + file("a") + " " + path("image.png") + " --with ";
  expect_refused(run(predict + file("few")), "few.safetensors: has 4 classes, ");
  EXPECT_EQ(run(predict + file("b")).status, 0);
}

TEST_F(EnsembleCommandTest, RefusesTheUsersMistakes) {
  expect_refused(run(certify(of_three(), "")), "--with: give --out");
  const std::string out = "--out " + path("a.tsv");
  expect_refused(run(certify(file("a") + " --with " + file("a"), out)), "a member is given once");
  expect_refused(run(certify(file("a") + " --with " + file("none"), out)), "no such run or model");
  expect_refused(run("attack " + file("a") + " --with " + file("b")), "--with: unknown option");
  expect_refused(run("sweep " + path("s") + " --with " + file("b")), "--with: unknown option");
  EXPECT_FALSE(std::filesystem::exists(path("a.tsv")));
  EXPECT_EQ(run(certify(of_three(), "--dry-run")).status, 0);
}

TEST_F(SlowEnsembleCommandTest, ContinuesAfterKill9) {
  const std::string more = "--n 8000 --limit 6 --resume --out ";
  ASSERT_EQ(run(certify(of_three(), more + path("whole.tsv"))).status, 0);
  const std::string killed = certify(of_three(), more + path("killed.tsv"));
  const pid_t child = start(killed);
  wait_for_rows(path("killed.tsv"), 2);
  ::kill(child, SIGKILL);
  EXPECT_EQ(finish(child).status, -SIGKILL);
  ASSERT_EQ(run(killed).status, 0);
  EXPECT_EQ(rows("killed.tsv"), rows("whole.tsv"));
}

TEST_F(EnsembleCommandTest, OnAGpuKilledAndResumedSaysTheSame) {
  const std::string gpu = "--device cuda --n 1000000 --resume --out ";
  if (run(certify(of_three(), "--device cuda --out " + path("probe.tsv"))).status != 0) {
    GTEST_SKIP() << "no CUDA device";
  }
  EXPECT_TRUE(read_identity(path("probe.tsv")).base->starts_with("cuda/"));
  ASSERT_EQ(run(certify(of_three(), gpu + path("whole.tsv"))).status, 0);
  const std::string killed = certify(of_three(), gpu + path("killed.tsv"));
  const pid_t child = start(killed);
  wait_for_rows(path("killed.tsv"), 2);
  ::kill(child, SIGKILL);
  EXPECT_EQ(finish(child).status, -SIGKILL);
  ASSERT_EQ(run(killed).status, 0);
  EXPECT_EQ(rows("killed.tsv"), rows("whole.tsv"));
}

}  // namespace
}  // namespace fedsmooth
