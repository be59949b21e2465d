// What keeps certificates sound and tables whole, as a user meets it.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "fedsmooth/base/sha256.h"
#include "fedsmooth/model/safetensors.h"
#include "fedsmooth/records/certificate_file.h"
#include "tests/cli/certify_program.h"
#include "tests/identities.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class CertifyGuardTest : public CertifyProgramTest {
 protected:
  // Line `number` of the table with one of its fields replaced.
  void replace_field(const std::string& table, int number, int column, const std::string& value) {
    std::string text = read_file(table);
    size_t begin = 0;
    for (int i = 0; i < number; ++i) begin = text.find('\n', begin) + 1;
    for (int i = 0; i < column; ++i) begin = text.find('\t', begin) + 1;
    text.replace(begin, text.find_first_of("\t\n", begin) - begin, value);
    write_file(table, text);
  }
};

class SlowCertifyGuardTest : public CertifyGuardTest {};

TEST_F(CertifyGuardTest, AVoidTableIsOfNoUse) {
  ASSERT_EQ(run(certify("--out " + path("t.tsv"))).status, 0);
  std::ofstream(path("t.tsv"), std::ios::app) << format_void("its answers changed");
  expect_refused(run(certify("--resume --out " + path("t.tsv"))), "is void");
  expect_refused_by_all(path("t.tsv"), "is void");
}

TEST_F(CertifyGuardTest, AnInterruptedTableHoldsProbedRowsOnly) {
  const pid_t child = start("certify " + model() + " --data.name=shapes --n 20000 --device cpu" +
                            " --threads 1 --out " + path("t.tsv"));
  wait_for_rows(path("t.tsv"), 2);
  ::kill(child, SIGINT);
  EXPECT_EQ(finish(child).status, 130);
  EXPECT_GE(read_certificates(path("t.tsv")).size(), 2U);
}

TEST_F(CertifyGuardTest, RowsAreCheckedAgainstTheirCounts) {
  ASSERT_EQ(run(certify("--out " + path("t.tsv"))).status, 0);
  replace_field(path("t.tsv"), 5, 14, "5.0");
  expect_refused_by_all(path("t.tsv"), "t.tsv:6: radius_exact is above what its counts support");
  expect_refused(run(certify("--resume --out " + path("t.tsv"))), "t.tsv:6: radius_exact");
}

// Without it nobody could say which model the rows are about.
TEST_F(CertifyGuardTest, BoundRowsWithoutTheirJsonAreRefusedByAll) {
  ASSERT_EQ(run(certify("--out " + path("t.tsv"))).status, 0);
  fs::remove(path("t.json"));
  expect_refused_by_all(path("t.tsv"), "t.json");
}

// A whole table of another run, JSON and all.
TEST_F(CertifyGuardTest, ARunsTableMustBeOfItsModel) {
  fs::create_directories(path("run"));
  ASSERT_EQ(run(certify("--out " + path("run/certificates.tsv"))).status, 0);
  const auto trained = [&](const std::string& sha256) {
    write_file(path("run/provenance.json"), nlohmann::json{{"model_sha256", sha256}}.dump());
  };
  trained(sha256(read_file(model())));
  EXPECT_EQ(read_certificates(path("run/certificates.tsv")).empty(), false);
  trained(sha256("another model"));
  expect_refused_by_all(path("run/certificates.tsv"), "is of another model than the one that this");
}

TEST_F(CertifyGuardTest, RowsAreCheckedAgainstTheIdentity) {
  ASSERT_EQ(run(certify("--out " + path("t.tsv"))).status, 0);
  change_identity(path("t.tsv"), [](CertificateIdentity& i) {
    i.seed = 3;
    i.run_seed = std::nullopt;
  });
  expect_refused_by_all(path("t.tsv"), "seed is not that of the table's identity");
}

// As a backup or a copy of two runs may leave it.
TEST_F(CertifyGuardTest, RowsOfAnotherModelAreRefusedByAll) {
  ASSERT_EQ(run(certify("--seed=1 --out " + path("a.tsv"))).status, 0);
  Safetensors other = parse_safetensors(read_file(model()), "model");
  other.tensors.begin()->second.floats()[0] += 0.5f;
  write_file(model(), format_safetensors(other));
  ASSERT_EQ(run(certify("--seed=1 --out " + path("b.tsv"))).status, 0);
  write_file(path("b.tsv"), read_file(path("a.tsv")));
  const std::string what = "b.tsv:2: subject is not that of the table's identity";
  expect_refused_by_all(path("b.tsv"), what);
  expect_refused(run(certify("--seed=1 --resume --out " + path("b.tsv"))), what);
}

TEST_F(CertifyGuardTest, AnIdentityOfANewerVersionIsRefusedByAll) {
  ASSERT_EQ(run(certify("")).status, 0);  // beside the model
  const std::string table = path("model.certificates.tsv");
  auto sidecar = nlohmann::json::parse(read_file(sidecar_path(table)));
  sidecar["identity"]["colour"] = "red";
  write_file(sidecar_path(table), sidecar.dump());
  const std::string what = "the identity has \"colour\", which this version does not know";
  expect_refused_by_all(table, what);
  expect_refused(run(certify("--resume")), what);
  expect_refused(run("predict " + model() + " 0 --data.name=shapes"), what);
}

TEST_F(CertifyGuardTest, UnboundTablesAreShownAsSuchAndNotContinued) {
  const std::string table = path("t.tsv");
  ASSERT_EQ(run(certify("--seed=1 --out " + table)).status, 0);
  auto rows = read_certificates(table);
  for (CertificateRow& row : rows) row.subject.clear();
  change_identity(table, [](CertificateIdentity& i) { i.subject = std::nullopt; });
  fs::remove(table);
  write_like(table, table, rows);
  expect_refused(run(certify("--seed=1 --resume --out " + table)), "did not bind rows");
  ASSERT_EQ(run("recertify " + table + " --alpha 0.01 --out " + path("again.tsv")).status, 0);
  EXPECT_EQ(read_certificates(path("again.tsv")).at(0).subject, "");  // still
  EXPECT_EQ(read_identity(path("again.tsv")).subject, std::nullopt);
  const Outcome report = run("report " + table + " --json");
  EXPECT_EQ(nlohmann::json::parse(report.out)["unbound"], nlohmann::json({"t"})) << report.err;
  EXPECT_NE(read_file(path("t.html")).find("unbound: an earlier version"), std::string::npos);
}

TEST_F(CertifyGuardTest, CompareWarnsOfOtherData) {
  ASSERT_EQ(run(certify("--seed=1 --out " + path("a.tsv"))).status, 0);
  auto rows = read_certificates(path("a.tsv"));
  write_like(path("a.tsv"), path("b.tsv"), rows);
  EXPECT_EQ(run("compare " + path("a.tsv") + " " + path("b.tsv")).out.find("different images"),
            std::string::npos);
  change_identity(path("b.tsv"), [](CertificateIdentity& i) { i.data_sha256 = "another"; });
  for (CertificateRow& row : rows) row.subject = *read_identity(path("b.tsv")).subject;
  fs::remove(path("b.tsv"));
  write_like(path("b.tsv"), path("b.tsv"), rows);
  const Outcome text = run("compare " + path("a.tsv") + " " + path("b.tsv"));
  EXPECT_NE(text.out.find("warning: The tables are about different images"), std::string::npos)
      << text.out << text.err;
}

TEST_F(CertifyGuardTest, MergeWritesNothingThatItWouldRefuse) {
  ASSERT_EQ(run(certify("--shard 1/2 --out " + path("a.tsv"))).status, 0);
  write_file(path("b.tsv"), read_file(path("a.tsv")));
  auto sidecar = nlohmann::json::parse(read_file(path("a.json")));
  sidecar["identity"]["shard"] = "2/2";
  write_file(path("b.json"), sidecar.dump());
  const std::string both = path("a.tsv") + " " + path("b.tsv") + " --out " + path("m.tsv");
  expect_refused(run("merge " + both), "merge: image 0 is in two shards");
  EXPECT_FALSE(fs::exists(path("m.tsv")));
  for (const nlohmann::json& shard :
       {nlohmann::json("x"), nlohmann::json("1/"), nlohmann::json(5)}) {
    sidecar["identity"]["shard"] = shard;
    write_file(path("b.json"), sidecar.dump());
    EXPECT_EQ(run("merge " + both).status, 2) << shard;
  }
}

TEST_F(SlowCertifyGuardTest, ATableHasOneWriter) {
  const std::string command = certify("--n 50000 --limit 4 --resume --out " + path("t.tsv"));
  const pid_t first = start(command);
  wait_for_rows(path("t.tsv"), 1);
  const int second = std::system(
      (std::string(FEDSMOOTH_PROGRAM) + " " + command + " 2>" + path("second")).c_str());
  EXPECT_EQ(WEXITSTATUS(second), 2);
  EXPECT_NE(read_file(path("second")).find("another process is writing it"), std::string::npos);
  ::kill(first, SIGKILL);
  finish(first);
  ASSERT_EQ(run(command).status, 0);
  EXPECT_EQ(read_certificates(path("t.tsv")).size(), 4U);
}

TEST_F(CertifyGuardTest, ClosedStreamsHarmNoFile) {
  int count = 0;
  for (const std::string closed : {"2>&-", ">&-", "<&-", "<&- >&- 2>&-"}) {
    const std::string out = path("t" + std::to_string(count++) + ".tsv");
    const std::string line = std::string(FEDSMOOTH_PROGRAM) + " " +
                             certify("--limit 3 --quiet --out " + out) + " >/dev/null " + closed;
    EXPECT_EQ(WEXITSTATUS(std::system(("exec " + line).c_str())), 0) << closed;
    EXPECT_EQ(read_certificates(out).size(), 3U) << closed;
    const std::string refused = std::string(FEDSMOOTH_PROGRAM) + " report nothing " + closed;
    EXPECT_EQ(WEXITSTATUS(std::system(("exec " + refused).c_str())), 2) << closed;
  }
}

TEST_F(CertifyGuardTest, AJsonOfTheUsersStays) {
  write_file(path("k.json"), "{\"my\":\"data\"}");
  ASSERT_EQ(run(certify("--out " + path("t.tsv"))).status, 0);
  const std::string out = " --out " + path("k.tsv");
  expect_refused(run(certify(out)), "k.json: exists and would be overwritten");
  expect_refused(run("recertify " + path("t.tsv") + " --alpha 0.01" + out), "k.json: exists");
  expect_refused(run("merge " + path("t.tsv") + out), "k.json: exists");
  EXPECT_EQ(read_file(path("k.json")), "{\"my\":\"data\"}");
  EXPECT_FALSE(fs::exists(path("k.tsv")));
}

TEST_F(CertifyGuardTest, FinalCertificatesHaveASeedOfTheirOwn) {
  ASSERT_EQ(run(certify("--out " + path("a.tsv"))).status, 0);
  ASSERT_EQ(run(certify("--certify.seed=9 --out " + path("b.tsv"))).status, 0);
  ASSERT_EQ(run(certify("--seed=9 --out " + path("c.tsv"))).status, 0);
  const auto a = read_certificates(path("a.tsv")), b = read_certificates(path("b.tsv")),
             c = read_certificates(path("c.tsv"));
  int64_t differ = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_NE(a[i].seed, 9U);
    EXPECT_EQ(b[i].seed, 9U);
    EXPECT_EQ(b[i].certificate.counts.top, c[i].certificate.counts.top);
    differ += a[i].certificate.counts.top != b[i].certificate.counts.top;
  }
  EXPECT_GT(differ, 5);
}

// A member of every entry of the list that a command printed.
std::vector<nlohmann::json> json_of(const Outcome& outcome, const char* member) {
  std::vector<nlohmann::json> found;
  for (const nlohmann::json& entry : nlohmann::json::parse(outcome.out)) {
    found.push_back(entry[member]);
  }
  return found;
}

TEST_F(CertifyGuardTest, PredictDrawsItsSeedAndStatesIt) {
  const std::string predict = "predict " + model() + " 0 1 --data.name=shapes --n 500 --json ";
  const auto a = nlohmann::json::parse(run(predict).out),
             b = nlohmann::json::parse(run(predict).out);
  EXPECT_NE(a[0]["seed"], b[0]["seed"]);
  const std::string seed = a[0]["seed"];  // as text: not every reader of JSON keeps 63 bits
  EXPECT_EQ(nlohmann::json::parse(run(predict + "--seed=" + seed).out), a);
  EXPECT_EQ(run(predict).err, "");
  const std::string words = "predict " + model() + " 0 1 --data.name=shapes --n 500 --seed=5";
  const std::string err = run(words).err, seed_line = "seed 5; `--seed=5` repeats the noise\n";
  EXPECT_EQ(err.substr(0, err.find("next: ")), seed_line) << err;
  EXPECT_EQ(run(words + " --quiet").err, "");
  // By fixed seeds, so that the votes cannot agree by chance one day.
  const std::string six = "predict " + model() + " 0 1 2 3 4 5 --data.name=shapes --json ";
  EXPECT_NE(json_of(run(six + "--seed=1"), "votes"), json_of(run(six + "--seed=2"), "votes"));
}

TEST_F(CertifyGuardTest, PredictWarnsWhereAnotherClassifierWasCertified) {
  ASSERT_EQ(run(certify("")).status, 0);  // beside the model
  const std::string predict = "predict " + model() + " 0 --data.name=shapes --device cpu ";
  EXPECT_EQ(run(predict).err.find("warning"), std::string::npos);
  EXPECT_NE(run(predict + "--sigma 0.5").err.find("warning: this is not the classifier"),
            std::string::npos);
  EXPECT_NE(run(predict + "--noise exact").err.find("the kind of noise"), std::string::npos);
  const std::string table = path("model.certificates.tsv");
  change_identity(table, [](CertificateIdentity& i) {
    i.fingerprint = "another";
    i.base = "cuda/bf16";
  });
  const Outcome other = run(predict);
  EXPECT_EQ(other.status, 0);
  EXPECT_NE(other.err.find("there cuda/bf16"), std::string::npos) << other.err;
}

}  // namespace
}  // namespace fedsmooth
