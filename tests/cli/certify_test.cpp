// certify, merge and recertify, as a user runs them, killed and resumed.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "fedsmooth/records/certificate_file.h"
#include "tests/cli/certify_program.h"
#include "tests/identities.h"
#include "tests/table_rows.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class CertifyCommandTest : public CertifyProgramTest {
 protected:
  // Rows without their times.
  std::vector<std::string> rows(const std::string& table) const {
    return rows_without_times(table);
  }
};

class SlowCertifyCommandTest : public CertifyCommandTest {};

TEST_F(CertifyCommandTest, WritesARowPerImage) {
  const Outcome done = run(certify("--json --out " + path("a.tsv")));
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(read_certificates(path("a.tsv")).size(), 20U);
  const auto summary = nlohmann::json::parse(done.out);
  EXPECT_EQ(summary["images"], 20);
  EXPECT_EQ(summary["certified_accuracy"][0]["radius"], 0.0);
  EXPECT_TRUE(fs::exists(path("a.json")));
}

TEST_F(CertifyCommandTest, SaysTheSameOnAnyNumberOfThreads) {
  ASSERT_EQ(run(certify("--threads 1 --out " + path("a.tsv"))).status, 0);
  ASSERT_EQ(run(certify("--threads 3 --out " + path("b.tsv"))).status, 0);
  EXPECT_EQ(rows(path("a.tsv")), rows(path("b.tsv")));
}

TEST_F(CertifyCommandTest, TakesCommonOptionsBeforeTheCommand) {
  const Outcome done = run("--json --threads 1 " + certify("--limit 2 --out " + path("a.tsv")));
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(nlohmann::json::parse(done.out)["images"], 2);
}

TEST_F(CertifyCommandTest, DrawsExactNoiseIfAsked) {
  const std::string exact = certify("--noise exact --out " + path("exact.tsv"));
  ASSERT_EQ(run(exact + " --threads 1").status, 0);
  ASSERT_EQ(run(certify("--out " + path("float.tsv"))).status, 0);
  const auto by_exact = read_certificates(path("exact.tsv"));
  const auto by_float = read_certificates(path("float.tsv"));
  ASSERT_EQ(by_exact.size(), by_float.size());
  EXPECT_EQ(by_exact[0].noise, &kExactNoise);
  EXPECT_FALSE(by_exact[0].shared);
  EXPECT_NE(by_exact[0].certificate.counts.top, by_float[0].certificate.counts.top);
  // Other votes for the same probabilities: at most 1000 / 4 in variance each.
  for (size_t i = 0; i < by_exact.size(); ++i) {
    if (by_exact[i].certificate.counts.selected != by_float[i].certificate.counts.selected)
      continue;
    EXPECT_NEAR(static_cast<double>(by_exact[i].certificate.counts.top),
                static_cast<double>(by_float[i].certificate.counts.top), 5 * std::sqrt(500.0));
  }
  expect_refused(run(certify("--noise exact --sigma 20")), "at most 16");
  expect_refused(run(certify("--resume --out " + path("exact.tsv"))), "differs in");
  EXPECT_EQ(run("predict " + model() + " 0 --data.name=shapes --noise exact").status, 0);
}

TEST_F(CertifyCommandTest, RefusesTheRemovedNoiseBankByName) {
  for (const char* option : {"--noise-bank", "--certify.noise_bank=true"}) {
    expect_refused(run(certify(option)), "certify.noise_bank=true: was removed");
  }
  EXPECT_EQ(run(certify("--certify.noise_bank=false --limit 1 --out " + path("a.tsv"))).status, 0);
  EXPECT_EQ(run("certify --help").out.find("noise-bank"), std::string::npos);
}

TEST_F(SlowCertifyCommandTest, ContinuesAfterKill9) {
  ASSERT_EQ(run(certify("--n 20000 --limit 8 --out " + path("whole.tsv"))).status, 0);
  const std::string killed = certify("--n 20000 --limit 8 --out " + path("killed.tsv"));
  for (const int64_t at : {1, 3, 6}) {
    const pid_t child = start(killed + " --resume");
    wait_for_rows(path("killed.tsv"), at);
    ::kill(child, SIGKILL);
    EXPECT_EQ(finish(child).status, -SIGKILL);
  }
  // As if the last row had been cut in the middle.
  const std::string text = read_file(path("killed.tsv"));
  std::ofstream(path("killed.tsv")) << text.substr(0, text.size() - 9);
  ASSERT_EQ(run(killed + " --resume").status, 0);
  EXPECT_EQ(rows(path("killed.tsv")), rows(path("whole.tsv")));
}

TEST_F(CertifyCommandTest, StopsCleanlyWhenInterrupted) {
  const std::string command = certify("--n 20000 --limit 6 --out " + path("a.tsv"));
  const pid_t child = start(command);
  wait_for_rows(path("a.tsv"), 2);
  ::kill(child, SIGINT);
  const Outcome stopped = finish(child);
  EXPECT_EQ(stopped.status, 130) << stopped.err;
  EXPECT_NE(stopped.err.find("--resume"), std::string::npos);
  ASSERT_EQ(run(command + " --resume").status, 0);
  EXPECT_EQ(read_certificates(path("a.tsv")).size(), 6U);
}

TEST_F(CertifyCommandTest, ShardsJoinToTheWhole) {
  ASSERT_EQ(run(certify("--out " + path("whole.tsv"))).status, 0);
  std::string parts;
  for (const std::string shard : {"3", "1", "2"}) {
    const std::string part = path("part" + shard + ".tsv");
    ASSERT_EQ(run(certify("--shard " + shard + "/3 --out " + part)).status, 0);
    parts += " " + part;
  }
  ASSERT_EQ(run("merge" + parts + " --out " + path("merged.tsv")).status, 0);
  EXPECT_EQ(rows(path("merged.tsv")), rows(path("whole.tsv")));
  expect_refused(run("merge " + path("part1.tsv") + " --out " + path("m.tsv")), "2/3 is missing");
  expect_refused(run("merge" + parts + " " + path("part1.tsv") + " --out " + path("m.tsv")),
                 "there twice");
}

// "auto" keys the noise by the run's seed, the model and the data; the number that comes of it,
// given by hand, draws the same votes.
TEST_F(CertifyCommandTest, TheSeedFollowsFromModelAndData) {
  ASSERT_EQ(run(certify("--out " + path("a.tsv"))).status, 0);
  const CertificateIdentity a = read_identity(path("a.tsv"));
  EXPECT_EQ(a.run_seed, 0U);
  EXPECT_EQ(a.seed, derive_seed(0, *a.model_sha256, *a.data_sha256));
  const std::string seed = std::to_string(*a.seed);
  ASSERT_EQ(run(certify("--seed=" + seed + " --out " + path("b.tsv"))).status, 0);
  EXPECT_EQ(rows(path("b.tsv")), rows(path("a.tsv")));
  EXPECT_EQ(read_identity(path("b.tsv")).run_seed, std::nullopt);
  expect_refused(run(certify("--seed=" + seed + " --resume --out " + path("a.tsv"))),
                 "differs in run_seed");
  ASSERT_EQ(run(certify("--data.held_out=1000 --out " + path("c.tsv"))).status, 0);
  EXPECT_NE(read_identity(path("c.tsv")).seed, a.seed);
}

TEST_F(CertifyCommandTest, MergeRefusesWhatDoesNotBelongTogether) {
  ASSERT_EQ(run(certify("--shard 1/2 --out " + path("a.tsv"))).status, 0);
  ASSERT_EQ(run(certify("--shard 2/2 --seed=1 --out " + path("b.tsv"))).status, 0);
  expect_refused(run("merge " + path("a.tsv") + " " + path("b.tsv") + " --out " + path("m.tsv")),
                 "they differ in run_seed");
  // Another machine's arithmetic is another classifier.
  const CertificateIdentity a = read_identity(path("a.tsv"));
  change_identity(path("b.tsv"), [&](CertificateIdentity& i) {
    i.seed = a.seed;
    i.run_seed = a.run_seed;
    i.base = "cuda/bf16/1024/sm90/torch-2.11.0";
  });
  expect_refused(run("merge " + path("a.tsv") + " " + path("b.tsv") + " --out " + path("m.tsv")),
                 "they differ in base");
  EXPECT_FALSE(fs::exists(path("m.tsv")));
}

TEST_F(CertifyCommandTest, RecertifyIsCertifyAtAnotherAlpha) {
  ASSERT_EQ(run(certify("--out " + path("a.tsv"))).status, 0);
  for (const std::string radius : {"one-sided", "multiclass"}) {
    const std::string to = " --alpha 0.05 --radius " + radius + " --out ";
    const std::string again = path("again-" + radius + ".tsv");
    ASSERT_EQ(run(certify(to + again)).status, 0);
    const std::string fresh = path("fresh-" + radius + ".tsv");
    ASSERT_EQ(run("recertify " + path("a.tsv") + to + fresh).status, 0);
    EXPECT_EQ(rows(again), rows(fresh));
  }
}

TEST_F(CertifyCommandTest, OnlyCorrectOnesAreEstimatedIfSoAsked) {
  ASSERT_EQ(run(certify("--out " + path("all.tsv"))).status, 0);
  ASSERT_EQ(run(certify("--only-correct --out " + path("some.tsv"))).status, 0);
  const auto all = read_certificates(path("all.tsv")), some = read_certificates(path("some.tsv"));
  int64_t left_out = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const Certificate &a = all[i].certificate, &b = some[i].certificate;
    EXPECT_EQ(all[i].correct(), some[i].correct());
    EXPECT_EQ(a.counts.selected, b.counts.selected);
    if (b.counts.selected == some[i].label) {
      EXPECT_EQ(b.counts.n, 1000);
      EXPECT_EQ(a.radius, b.radius);
    } else {
      ++left_out;
      EXPECT_EQ(b.counts.n, 0);
      EXPECT_EQ(b.predict, b.counts.selected);
      EXPECT_EQ(b.radius, 0);
    }
  }
  EXPECT_GT(left_out, 0);
  EXPECT_LT(left_out, 20);
  expect_refused(run(certify("--resume --out " + path("some.tsv"))), "only_correct");
  EXPECT_EQ(
      run("recertify " + path("some.tsv") + " --alpha 0.01 --out " + path("again.tsv")).status, 0);
  EXPECT_EQ(read_certificates(path("again.tsv")).size(), 20U);
}

TEST_F(CertifyCommandTest, OnAGpuKilledAndResumedSaysTheSame) {
  if (run(certify("--device cuda --out " + path("probe.tsv"))).status != 0) {
    GTEST_SKIP() << "no CUDA device";
  }
  const std::string gpu = "--device cuda --n 3000000 --out ";
  ASSERT_EQ(run(certify(gpu + path("whole.tsv"))).status, 0);
  const std::string killed = certify(gpu + path("killed.tsv"));
  for (const int64_t at : {2, 9}) {
    const pid_t child = start(killed + " --resume");
    wait_for_rows(path("killed.tsv"), at);
    ::kill(child, SIGKILL);
    EXPECT_EQ(finish(child).status, -SIGKILL);
  }
  ASSERT_EQ(run(killed + " --resume").status, 0);
  EXPECT_EQ(rows(path("killed.tsv")), rows(path("whole.tsv")));
}

TEST_F(CertifyCommandTest, LeavesOtherCertificationsAlone) {
  ASSERT_EQ(run(certify("--out " + path("a.tsv"))).status, 0);
  const std::string before = read_file(path("a.tsv"));
  expect_refused(run(certify("--out " + path("a.tsv"))), "exists");
  expect_refused(run(certify("--alpha 0.01 --resume --out " + path("a.tsv"))), "alpha");
  expect_refused(run(certify("--sigma 0.5 --resume --out " + path("a.tsv"))), "sigma");
  EXPECT_EQ(read_file(path("a.tsv")), before);
  EXPECT_EQ(run(certify("--resume --out " + path("a.tsv"))).status, 0);
  EXPECT_EQ(read_file(path("a.tsv")), before);
}

TEST_F(CertifyCommandTest, RefusesTheUsersMistakes) {
  const std::string out = " --out " + path("a.tsv");
  expect_refused(run(certify("--sigma 0" + out)), "must be positive");
  expect_refused(run(certify("--sigma 3e38" + out)), "sigma=3e+38: must be positive and at most");
  EXPECT_FALSE(fs::exists(path("a.tsv")));
  expect_refused(run(certify("--alpha 1" + out)), "--certify.alpha=1: must be at least 1e-50");
  expect_refused(run(certify("--n 9" + out)), "at least 10");
  expect_refused(run(certify("--n0 0" + out)), "must be positive");
  expect_refused(run(certify("--alpa 0.1" + out)), "did you mean --alpha?");
  expect_refused(run(certify("--certify.evry=3" + out)), "did you mean --certify.every?");
  expect_refused(run(certify("--data.name=cifar11" + out)), "must be cifar10");
  expect_refused(run(certify("--shard 4/3" + out)), "I/K");
  expect_refused(run(certify("--shard 40/40" + out)), "no images");
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);  // a machine without a GPU, wherever this runs
  expect_refused(run(certify("--device cuda" + out)), "--device=cuda: this ");
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  expect_refused(run(certify("--device tpu" + out)), "auto, cpu or cuda");
  expect_refused(run(certify("--threads=-1" + out)), "--threads");
  expect_refused(run(certify("--out /proc/none/a.tsv")), "cannot be written");
  expect_refused(run("certify " + path("none.safetensors") + out), "no such run or model");
  expect_refused(run("certify " + folder_.string() + out), "no run here");
  expect_refused(
      run("certify " + model() + " --data.name=cifar10 --data.root=" + path("nowhere") + out),
      "nowhere");
  EXPECT_FALSE(fs::exists(path("a.tsv")));
}

TEST_F(CertifyCommandTest, RefusesBrokenModels) {
  const std::string bytes = read_file(model());
  const auto broken = [&](const std::string& content) {
    write_file(model(), content);
    return run(certify("--out " + path("a.tsv")));
  };
  expect_refused(broken(bytes.substr(0, bytes.size() - 1)), model());
  expect_refused(broken(bytes + "x"), "1 bytes after the last tensor");
  expect_refused(broken(""), "not a safetensors file");
  expect_refused(broken(std::string(8, '\xff') + bytes.substr(8)), "header");
  write_file(path("broken.pt"), bytes);
  expect_refused(run("certify " + path("broken.pt") + " --data.name=shapes --sigma 0.25"),
                 "TorchScript");
}

}  // namespace
}  // namespace fedsmooth
