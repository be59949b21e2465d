// attack, as a user runs it: killed, resumed, refused.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "fedsmooth/records/attacks.h"
#include "fedsmooth/records/certificate_file.h"
#include "tests/cli/program.h"
#include "tests/identities.h"
#include "tests/nearest_mean.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class AttackCommandTest : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    write_nearest_mean(model());
  }

  std::string model() const { return path("model.safetensors"); }
  std::string attack(const std::string& more) const {
    return "attack " + model() +
           " --data.name=shapes --every 100 --n 200 --m 4 --steps 3 --epsilon 1,0.5,2 " + more;
  }
};

TEST_F(AttackCommandTest, StaysInTheBallAndNeverHelps) {
  const Outcome done = run(attack("--json --out " + path("a.tsv")));
  ASSERT_EQ(done.status, 0) << done.err;
  const auto rows = read_attacks(path("a.tsv"));
  ASSERT_EQ(rows.size(), 20U * 4);
  int64_t moved = 0;
  for (const AttackRow& row : rows) {
    EXPECT_LE(row.perturbation, row.epsilon);
    moved += row.epsilon > 0 && row.perturbation > 0.99 * row.epsilon;
  }
  EXPECT_GT(moved, 0);
  const auto summary = nlohmann::json::parse(done.out);
  const auto& curve = summary["accuracy_under_attack"];
  EXPECT_EQ(summary["images"], 20);
  ASSERT_EQ(curve.size(), 4U);
  EXPECT_EQ(curve[1]["epsilon"], 0.5);
  for (size_t i = 1; i < curve.size(); ++i) {
    EXPECT_LE(curve[i]["accuracy"].get<double>(), curve[i - 1]["accuracy"].get<double>());
  }
  // A classifier that compares with mean images has no chance against |x_adv - x| = 2.
  EXPECT_LT(curve[3]["accuracy"].get<double>(), curve[0]["accuracy"].get<double>());
}

// As a copy of two runs may leave it.
TEST_F(AttackCommandTest, RowsOfAnotherAttackAreRefused) {
  ASSERT_EQ(run(attack("--out " + path("attack.tsv"))).status, 0);
  const std::string rows = read_file(path("attack.tsv"));
  ASSERT_EQ(run(attack("--estimator one-point --out " + path("other.tsv"))).status, 0);
  write_file(path("attack.tsv"), read_file(path("other.tsv")));
  const std::string what = "attack.tsv: its rows are not those that attack.json was written for";
  expect_refused(run(attack("--resume --out " + path("attack.tsv"))), what);
  EXPECT_NE(refusal([&] { read_attacks(path("attack.tsv")); }).find(what), std::string::npos);
  write_file(path("attack.tsv"), rows);
  EXPECT_EQ(run(attack("--resume --out " + path("attack.tsv"))).status, 0);
  // What a kill left has no seal, and gets one when it is finished.
  fs::resize_file(path("attack.tsv"), rows.size() / 2);
  auto sidecar = nlohmann::json::parse(read_file(path("attack.json")));
  sidecar.erase("table_sha256");
  const std::string seed = sidecar["identity"]["seed"];
  sidecar["identity"]["seed"] = std::stoull(seed);  // as version 0.2 wrote it
  write_file(path("attack.json"), sidecar.dump());
  EXPECT_FALSE(read_attacks(path("attack.tsv")).empty());
  EXPECT_EQ(run(attack("--resume --out " + path("attack.tsv"))).status, 0);
  EXPECT_EQ(read_file(path("attack.tsv")), rows);
  EXPECT_NE(read_file(path("attack.json")).find("table_sha256"), std::string::npos);
}

TEST_F(AttackCommandTest, WithoutPerturbationItIsThePrediction) {
  ASSERT_EQ(run(attack("--out " + path("a.tsv"))).status, 0);
  std::vector<int64_t> predicted;
  std::string images;
  for (const AttackRow& row : read_attacks(path("a.tsv"))) {
    if (row.epsilon > 0) continue;
    predicted.push_back(row.predict);
    images += " " + std::to_string(row.index);
  }
  ASSERT_EQ(predicted.size(), 20U);
  const Outcome plain = run("predict " + model() + " --data.name=shapes --n 200 --json" + images);
  const auto answers = nlohmann::json::parse(plain.out);
  for (size_t i = 0; i < predicted.size(); ++i) {
    const auto votes = answers[i]["votes"].get<std::vector<int64_t>>();
    EXPECT_EQ(predicted[i], std::max_element(votes.begin(), votes.end()) - votes.begin());
  }
}

TEST_F(AttackCommandTest, SaysTheSameOnAnyNumberOfThreads) {
  ASSERT_EQ(run(attack("--threads 1 --out " + path("one.tsv"))).status, 0);
  ASSERT_EQ(run(attack("--threads 2 --out " + path("two.tsv"))).status, 0);
  EXPECT_EQ(read_file(path("one.tsv")), read_file(path("two.tsv")));
  ASSERT_EQ(run(attack("--estimator one-point --out " + path("other.tsv"))).status, 0);
  EXPECT_NE(read_file(path("one.tsv")), read_file(path("other.tsv")));
}

TEST_F(AttackCommandTest, ContinuesAfterKill9) {
  // Enough votes that rows are written after every few images, long before the last one.
  const auto attack_to = [&](const std::string& out) {
    return "attack " + model() + " --data.name=shapes --every 200 --n 5000 --m 4 --steps 3" +
           " --epsilon 1 --threads 1 --out " + path(out);
  };
  ASSERT_EQ(run(attack_to("whole.tsv")).status, 0);
  const std::string killed = attack_to("killed.tsv");
  const pid_t child = start(killed);
  wait_for_rows(path("killed.tsv"), 2);
  ::kill(child, SIGKILL);
  finish(child);
  // As if the kill had come within the rows of an image.
  const std::string text = read_file(path("killed.tsv"));
  std::ofstream(path("killed.tsv")) << text.substr(0, text.size() - 9);
  expect_refused(run(killed), "exists");
  ASSERT_EQ(run(killed + " --resume").status, 0);
  EXPECT_EQ(read_file(path("killed.tsv")), read_file(path("whole.tsv")));
}

TEST_F(AttackCommandTest, StandsBesideTheCertificates) {
  ASSERT_EQ(
      run("certify " + model() + " --data.name=shapes --every 100 --n 1000 --device cpu").status,
      0);
  const Outcome done = run(attack("--json --n 1000 --device cpu"));
  ASSERT_EQ(done.status, 0) << done.err;
  const auto found = nlohmann::json::parse(done.out);
  for (const auto& point : found["accuracy_under_attack"]) {
    EXPECT_LE(point["certified_accuracy"].get<double>(), point["accuracy"].get<double>());
  }
  EXPECT_EQ(done.err.find("warning"), std::string::npos) << done.err;

  // Certificates of a classifier that withstands everything.
  const fs::path table = path("model.certificates.tsv");
  auto rows = read_certificates(table);
  for (CertificateRow& row : rows) {
    row.certificate = certificate_from_counts({row.label, 1'000'000, 1'000'000, 0}, row.sigma,
                                              row.alpha, {}, kFloatNoise);
  }
  change_identity(table, [](CertificateIdentity& i) { i.n = 1'000'000; });
  fs::remove(table);
  write_like(table, table, rows);
  const Outcome warned = run(attack("--n 1000 --resume"));
  EXPECT_EQ(warned.status, 0);
  EXPECT_NE(warned.err.find("misled within their certified radius"), std::string::npos)
      << warned.err;
  EXPECT_NE(warned.out.find("certified %"), std::string::npos);

  // At another noise level they say nothing about it.
  const Outcome other = run(attack("--sigma 0.5 --out " + path("other.tsv")));
  EXPECT_EQ(other.out.find("certified %"), std::string::npos) << other.out;
}

TEST_F(AttackCommandTest, LeavesOtherAttacksAlone) {
  ASSERT_EQ(run(attack("--out " + path("a.tsv"))).status, 0);
  const std::string before = read_file(path("a.tsv")), again = "--resume --out " + path("a.tsv");
  expect_refused(run(attack("--steps 4 " + again)), "attack.steps: 3 there, 4 here");
  expect_refused(run(attack("--epsilon 3 " + again)), "epsilons");
  EXPECT_EQ(run(attack(again)).status, 0);
  EXPECT_EQ(read_file(path("a.tsv")), before);
}

TEST_F(AttackCommandTest, AFieldOfANewerVersionIsRefusedByName) {
  ASSERT_EQ(run(attack("--out " + path("a.tsv"))).status, 0);
  auto sidecar = nlohmann::json::parse(read_file(path("a.json")));
  sidecar["identity"]["attack.colour"] = "red";
  write_file(path("a.json"), sidecar.dump());
  expect_refused(run(attack("--resume --out " + path("a.tsv"))),
                 "a.json: the identity has \"attack.colour\", which this version does not know");
}

TEST_F(AttackCommandTest, RefusesTheUsersMistakes) {
  const std::string out = " --out " + path("a.tsv");
  for (const std::string epsilons : {"0.5,", "'0.5;1'", "''"}) {
    expect_refused(run(attack("--epsilon=" + epsilons + out)), "with commas between them");
  }
  for (const std::string epsilons : {"-1", "0.5,nan"}) {
    expect_refused(run(attack("--epsilon=" + epsilons + out)), "must be between 0 and");
  }
  expect_refused(run(attack("--n 0" + out)), "--n=0: must be positive");
  expect_refused(run(attack("--m 0" + out)), "must be positive");
  expect_refused(run(attack("--estimator three-point" + out)), "must be stochastic");
  expect_refused(run(attack("--attack.epsilon=0.5" + out)), "give --epsilon");
  expect_refused(run(attack("--sigma 0" + out)), "must be positive");
  expect_refused(run(attack("--out " + path("a.txt"))), "must end in .tsv");
  expect_refused(run("attack " + path("none")), "no such run or model");
  EXPECT_FALSE(fs::exists(path("a.tsv")));
}

}  // namespace
}  // namespace fedsmooth
