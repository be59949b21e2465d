// Jobs as a C++ program calls them: no terminal, and every guard of the commands.
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "fedsmooth/base/file.h"
#include "fedsmooth/fedsmooth.h"
#include "fedsmooth/records/certificate_file.h"
#include "fedsmooth/records/run.h"
#include "tests/jobs/job_folder.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class JobsTest : public JobTest {
 protected:
  jobs::TrainedRun train(const std::string& name, bool resume = false) {
    return jobs::train({small_experiment(), path(name), resume}, context_);
  }
  fs::path certify(const std::string& name, bool resume = false, const Overrides& overrides = {}) {
    return jobs::certify({.path = path(name).string(), .resume = resume}, overrides, context_);
  }
};

// Counts the steps it is given, and stops the job after some.
class Steps : public jobs::Progress {
 public:
  explicit Steps(std::atomic<int>& count) : count_(count) {}
  void step(const std::string&) override { ++count_; }

 private:
  std::atomic<int>& count_;
};

TEST_F(JobsTest, TrainCertifyPredictAttackReport) {
  const jobs::TrainedRun run = train("run");
  EXPECT_TRUE(run.is_new);
  EXPECT_EQ(run.rounds, 3);
  EXPECT_FALSE(train("run", /*resume=*/true).is_new);
  const fs::path table = certify("run");
  EXPECT_EQ(table, path("run") / "certificates.tsv");
  EXPECT_EQ(read_certificates(table).size(), 5U);

  std::vector<std::string> heard;
  const auto answers =
      jobs::predict({path("run").string(), {"0", "3"}, 100}, {{"seed", "7"}}, context_,
                    [&](const jobs::Answer& answer) { heard.push_back(answer.image); });
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(heard, (std::vector<std::string>{"0", "3"}));
  EXPECT_EQ(answers[0].seed, 7U);
  EXPECT_EQ(answers[0].votes.size(), 10U);
  EXPECT_EQ(answers[0].class_names.size(), 10U);

  const jobs::AttackOutcome attacked =
      jobs::attack({.path = path("run").string(), .epsilons = {0.25}, .n = 50},
                   {{"smoothing.m", "2"}}, context_);
  EXPECT_EQ(attacked.summary.images, 5);
  EXPECT_EQ(attacked.summary.certified_images, 5);
  ASSERT_EQ(attacked.summary.points.size(), 2U);
  EXPECT_LE(attacked.summary.points[1].accuracy.value, attacked.summary.points[0].accuracy.value);

  if (std::system("command -v gnuplot >/dev/null") != 0) GTEST_SKIP() << "no gnuplot for the page";
  const auto runs = jobs::report({path("run").string()}, path("page.html"), context_);
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_NE(read_file(path("page.html")).find("</html>"), std::string::npos);
}

TEST_F(JobsTest, AStoppedTrainingResumesToTheSameBits) {
  const std::string whole = train("whole").model_sha256;
  std::atomic<int> rounds = 0;
  context_.progress = [&](const std::string& what, int64_t done, int64_t total) {
    EXPECT_EQ(what, "train");
    EXPECT_EQ(done, 0);
    EXPECT_EQ(total, 3);
    return std::make_unique<Steps>(rounds);
  };
  context_.stopped = [&] { return rounds >= 1; };
  EXPECT_THROW(train("stopped"), Interrupted);
  EXPECT_FALSE(fs::exists(path("stopped") / "DONE"));
  context_.stopped = [] { return false; };
  context_.progress = {};
  EXPECT_EQ(train("stopped", /*resume=*/true).model_sha256, whole);
}

TEST_F(JobsTest, AStoppedCertificationResumes) {
  train("run");
  std::atomic<int> images = 0;
  context_.progress = [&](const std::string&, int64_t, int64_t) {
    return std::make_unique<Steps>(images);
  };
  context_.stopped = [&] { return images >= 1; };
  const Overrides many = {{"certify.n", "20000"}, {"certify.every", "1000"}};  // one by one
  EXPECT_THROW(certify("run", false, many), Interrupted);
  const size_t rows = read_certificates(path("run") / "certificates.tsv").size();
  EXPECT_GE(rows, 1U);
  EXPECT_LT(rows, 2U);
  context_.stopped = [] { return false; };
  certify("run", /*resume=*/true, many);
  EXPECT_EQ(read_certificates(path("run") / "certificates.tsv").size(), 2U);
}

TEST_F(JobsTest, AStoppedAttackKeepsWhatItFinished) {
  train("run");
  const auto attack = [&](const std::string& out, bool resume) {
    jobs::attack({.path = path("run").string(),
                  .out = path(out).string(),
                  .epsilons = {0.25},
                  .n = 50,
                  .resume = resume},
                 {{"smoothing.m", "2"}}, context_);
  };
  attack("whole.tsv", false);
  int asked = 0;
  context_.stopped = [&] { return ++asked > 4; };  // once for each row
  EXPECT_THROW(attack("a.tsv", false), Interrupted);
  const size_t rows = read_attacks(path("a.tsv")).size();
  EXPECT_GE(rows, 2U);
  EXPECT_LT(rows, 10U);
  context_.stopped = [] { return false; };
  attack("a.tsv", true);
  EXPECT_EQ(read_file(path("a.tsv")), read_file(path("whole.tsv")));
}

TEST_F(JobsTest, ATableIsWrittenByOneJobAtATime) {
  train("run");
  std::atomic<int> images = 0;
  context_.progress = [&](const std::string&, int64_t, int64_t) {
    return std::make_unique<Steps>(images);
  };
  context_.threads = 1;
  // Asked for in the middle of the first.
  bool refused = false;
  context_.stopped = [&] {
    if (images == 1 && !refused) {
      refused = true;
      jobs::Context other;
      other.device = "cpu";
      expect_error(
          [&] { jobs::certify({.path = path("run").string(), .resume = true}, {}, other); },
          "certificates.tsv");
    }
    return false;
  };
  certify("run", false, {{"certify.n", "20000"}, {"certify.every", "1000"}});
  EXPECT_TRUE(refused);
}

TEST_F(JobsTest, ThreadsRunJobsAtOnceWithTheSameResults) {
  const std::string model = train("alone").model_sha256;
  const auto rows_of = [&](const std::string& name) {
    std::vector<CertificateRow> rows = read_certificates(path(name) / "certificates.tsv");
    std::string text;
    for (CertificateRow& row : rows) {
      row.seconds = 0;
      text += format_row(row);
    }
    return text;
  };
  certify("alone");
  std::vector<std::string> models(3);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < models.size(); ++i) {
    threads.emplace_back([&, i] {
      const jobs::Context context = {.device = "cpu", .threads = 2};
      const std::string folder = path(std::to_string(i)).string();
      models[i] = jobs::train({small_experiment(), folder}, context).model_sha256;
      jobs::certify({.path = folder}, {}, context);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < models.size(); ++i) {
    EXPECT_EQ(models[i], model);
    EXPECT_EQ(rows_of(std::to_string(i)), rows_of("alone"));
  }
}

TEST_F(JobsTest, ARunIsTrainedByOneJobAtATime) {
  bool refused = false;
  context_.stopped = [&] {
    if (!refused && fs::exists(path("run") / "experiment.toml")) {
      refused = true;
      const jobs::Context other = {.device = "cpu", .threads = 1};
      expect_error(
          [&] {
            jobs::train({small_experiment(), path("run"), true}, other);
          },
          "another process is at work there; wait until it is done");
    }
    return false;
  };
  train("run");
  EXPECT_TRUE(refused);
}

TEST_F(JobsTest, NothingOfTheUsersIsOverwritten) {
  train("run");
  write_file(path("mine.tsv"), "my notes\n");
  const auto onto = [&](const std::string& out, bool resume) {
    return [this, out, resume] {
      jobs::certify({.path = path("run").string(), .out = path(out).string(), .resume = resume}, {},
                    context_);
    };
  };
  expect_error(onto("mine.tsv", false), "mine.");
  expect_error(onto("mine.tsv", true), "mine.");
  EXPECT_EQ(read_file(path("mine.tsv")), "my notes\n");
  certify("run");
  expect_error([&] { certify("run"); }, "certificates.tsv");
  expect_error([&] { certify("run", true, {{"certify.n", "300"}}); }, "certificates");
}

TEST_F(JobsTest, WhatCannotBeRunIsRefusedBeforeAnythingIsWritten) {
  train("run");
  context_.threads = -1;
  expect_error([&] { certify("run"); }, "--threads=-1");
  context_.threads = 1;
  context_.device = "tpu";
  expect_error([&] { certify("run"); }, "tpu");
  expect_error([&] { train("other"); }, "tpu");
  EXPECT_FALSE(fs::exists(path("other")));
  context_.device = "cpu";
  expect_error([&] { certify("run", false, {{"certify.alpha", "2"}}); }, "alpha");
  EXPECT_FALSE(fs::exists(path("run") / "certificates.tsv"));
}

// `shapes` with its first two classes exchanged, as a folder that sorts other names first has them.
Dataset read_exchanged(const fs::path& root, Split split) {
  Dataset data = data_sources().find("shapes").read(root, split);
  std::swap(data.class_names[0], data.class_names[1]);
  for (int64_t& label : data.labels) label = label < 2 ? 1 - label : label;
  return data;
}

// `shapes` with numbers for class names, as an array of labels has them.
Dataset read_renamed(const fs::path& root, Split split) {
  Dataset data = data_sources().find("shapes").read(root, split);
  for (int64_t c = 0; c < data.classes(); ++c) data.class_names[c] = std::to_string(c);
  return data;
}

TEST_F(JobsTest, RefusesDataThatNumberTheClassesOtherwise) {
  data_sources().add({"exchanged", read_exchanged});
  data_sources().add({"renamed", read_renamed});
  train("run");
  const Overrides exchanged = {{"data.name", "exchanged"}};
  expect_error([&] { certify("run", false, exchanged); }, "is class 1 of the data");
  expect_error(
      [&] {
        jobs::predict({path("run").string(), {"0"}, 100}, exchanged, context_);
      },
      "is class 1 of the data");
  EXPECT_EQ(read_certificates(certify("run", false, {{"data.name", "renamed"}})).size(), 5U);
}

TEST_F(JobsTest, PredictWarnsOfAnotherClassifier) {
  train("run");
  certify("run");
  warnings_.clear();
  const jobs::PredictArguments one{path("run").string(), {"0"}, 100};
  jobs::predict(one, {}, context_);
  EXPECT_TRUE(warnings_.empty());
  jobs::predict(one, {{"certify.sigma", "0.5"}}, context_);
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_NE(warnings_[0].find("sigma"), std::string::npos);
}

TEST_F(JobsTest, ASweepReportsOnItsFolder) {
  if (std::system("command -v gnuplot >/dev/null") != 0) GTEST_SKIP() << "no gnuplot";
  fs::create_directories(path("experiments"));
  Experiment e = small_experiment();
  write_file(path("experiments") / "a.toml", format_experiment(e));
  e.train.method = Method::kGaussian;
  write_file(path("experiments") / "b.toml", format_experiment(e));
  const jobs::SweepArguments arguments{path("experiments").string(), path("out").string()};
  const jobs::SweepResult result = jobs::sweep(arguments, {}, context_);
  EXPECT_EQ(result.done.size(), 2U);
  EXPECT_EQ(result.failed, 0U);
  EXPECT_EQ(result.runs.size(), 2U);
  EXPECT_TRUE(fs::exists(result.page));
}

TEST_F(JobsTest, RecertifyAndMergeKeepTheCounts) {
  train("run");
  const std::string model = (path("run")).string();
  std::vector<std::string> shards;
  for (const std::string shard : {"1/2", "2/2"}) {
    shards.push_back(path("shard" + shard.substr(0, 1) + ".tsv").string());
    jobs::certify({.path = model, .out = shards.back(), .shard = shard}, {}, context_);
  }
  jobs::merge(shards, path("all.tsv"));
  const auto merged = read_certificates(path("all.tsv"));
  const auto alone = read_certificates(certify("run"));
  ASSERT_EQ(merged.size(), alone.size());
  const auto again =
      read_certificates(jobs::recertify({.table = path("all.tsv").string(), .alpha = 0.01}));
  ASSERT_EQ(again.size(), alone.size());
  for (size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(merged[i].certificate.counts.top, alone[i].certificate.counts.top);
    EXPECT_EQ(merged[i].certificate.radius, alone[i].certificate.radius);
    EXPECT_EQ(again[i].certificate.counts.top, alone[i].certificate.counts.top);
    EXPECT_GE(again[i].certificate.radius, alone[i].certificate.radius);
  }
  expect_error([&] { jobs::merge(shards, path("all.tsv")); }, "exists");
}

}  // namespace
}  // namespace fedsmooth
