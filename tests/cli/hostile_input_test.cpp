// Files that were damaged or made to do harm, numbers beyond all measure, names that are not text:
// one line and status 2, or as if nothing were wrong.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fedsmooth/records/certificates.h"
#include "tests/cli/program.h"
#include "tests/nearest_mean.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class HostileInputTest : public ProgramTest {
 protected:
  std::string make_model(const std::string& name = "model.safetensors") {
    write_nearest_mean(path(name));
    return path(name);
  }

  std::string certify(const std::string& model, const std::string& more) const {
    return "certify '" + model + "' --data.name=shapes --every 500 --n 200 --device cpu " + more;
  }

  // A training of one round that takes no time.
  std::string train(const std::string& data, const std::string& more) {
    write_file(path("e.toml"), R"(
[model]
name = "small"
[partition]
kind = "iid"
clients = 4
samples_per_client = 10
[train]
rounds = 1
clients_per_round = 2
[train.local]
steps = 1
batch = 4
[certify]
n = 200
)");
    return "train " + path("e.toml") + data + "--device cpu " + more;
  }
};

TEST_F(HostileInputTest, SidecarsOfAWrongType) {
  const std::string model = make_model(), table = path("t.tsv");
  ASSERT_EQ(run(certify(model, "--out " + table)).status, 0);
  const json good = json::parse(read_file(path("t.json")));
  const json wrong = {{"images", "abc"}, {"n", "x"}, {"sigma", true}};
  for (const auto& [key, value] : wrong.items()) {
    json bad = good;
    bad["identity"][key] = value;
    write_file(path("t.json"), bad.dump());
    for (const std::string& command :
         {"report " + table, "plot " + table + " --out " + path("f.svg"),
          "merge " + table + " --out " + path("m.tsv"), "recertify " + table + " --alpha 0.01"}) {
      expect_refused(run(command), "\"" + key + "\"");
    }
  }
}

TEST_F(HostileInputTest, SidecarsThatAreNestedWithoutEnd) {
  const std::string model = make_model(), table = path("t.tsv");
  ASSERT_EQ(run(certify(model, "--out " + table)).status, 0);
  const int depth = 100'000;
  write_file(path("t.json"),
             "{\"identity\": {\"a\": " + std::string(depth, '[') + std::string(depth, ']') + "}}");
  for (const std::string& command : {"report " + table, "recertify " + table + " --alpha 0.01",
                                     certify(model, "--resume --out " + table)}) {
    expect_refused(run(command), "nested more than 64 deep");
  }
}

TEST_F(HostileInputTest, ARunWhoseFilesAreDamagedIsLeftOutOfASweepsReport) {
  const std::string data = write_tiny_data();
  ASSERT_EQ(run(train(data, "--out " + path("all/good"))).status, 0);
  ASSERT_EQ(run(train(data, "--out " + path("all/bad"))).status, 0);
  ASSERT_EQ(run("certify " + path("all/bad") + data + "--every 1").status, 0);
  json sidecar = json::parse(read_file(path("all/bad/certificates.json")));
  sidecar["identity"]["images"] = "abc";
  write_file(path("all/bad/certificates.json"), sidecar.dump());
  const Outcome report = run("report " + path("all") + " --out " + path("t.md"));
  EXPECT_EQ(report.status, 0) << report.err;
  EXPECT_NE(report.err.find("left out of the report"), std::string::npos);
  // A provenance of a wrong type, too.
  write_file(path("all/good/provenance.json"), "{\"model_sha256\": 5}");
  expect_refused(run("certify " + path("all/good") + data), "\"model_sha256\" is 5");
}

TEST_F(HostileInputTest, NamesThatAreNotText) {
  const std::string model = make_model("bad\xffname.safetensors");
  const std::string table = path("bad\xfftable.tsv");
  EXPECT_EQ(run(certify(model, "--json --out '" + table + "'")).status, 0);
  EXPECT_EQ(run("recertify '" + table + "' --alpha 0.01 --json").status, 0);
  EXPECT_EQ(run("report '" + table + "' --json --out " + path("t.md")).status, 0);
  EXPECT_EQ(run("predict '" + model + "' 0 --data.name=shapes --json").status, 0);
  const std::string data = write_tiny_data();
  EXPECT_EQ(run(train(data, "--json --out '" + path("bad\xffrun") + "'")).status, 0);
}

TEST_F(HostileInputTest, PartitionFiles) {
  const std::string data = write_tiny_data(), file = path("p.tsv");
  const auto partition = [&](const std::string& text) {
    write_file(path("e.toml"), "");
    write_file(file, text);
    return run("partition " + path("e.toml") + data +
               "--partition.kind=file --partition.file=" + file);
  };
  expect_refused(partition(""), "p.tsv: is empty");
  expect_refused(partition("100000000\t0\n"),
                 "p.tsv:1: client 100000000, but 1 lines hold at most");
  EXPECT_EQ(partition("1\t0\n0\t1\n").status, 0);
}

TEST_F(HostileInputTest, NumbersBeyondSinglePrecision) {
  const std::string data = write_tiny_data();
  for (const std::string key : {"attack.epsilon", "attack.step_size", "train.local.learning_rate",
                                "train.local.weight_decay", "smoothing.sigma", "model.mean"}) {
    const std::string value = key == "model.mean" ? "[1e308]" : "1e308";
    expect_refused(run(train(data, "--" + key + "=" + value)), "must be at most 3.4e38");
  }
  const std::string model = make_model();
  expect_refused(run("attack " + model + " --data.name=shapes --epsilon 1e308"),
                 "must be between 0 and 1000000");
  EXPECT_FALSE(fs::exists(path("model.attack.tsv")));
}

TEST_F(HostileInputTest, NoiseThatDrownsEverythingIsNamed) {
  const std::string data = write_tiny_data();
  expect_refused(run(train(data, "--smoothing.sigma=1e30 --out " + path("r"))),
                 "smoothing.sigma=1e+30 may be too large");
  expect_refused(run(train(data, "--smoothing.sigma=1e38 --out " + path("r"))), "at most 1e+30");
}

TEST_F(HostileInputTest, CountsBeyondAllMeasureAreRefusedByName) {
  const std::string data = write_tiny_data();
  expect_refused(run(train(data, "--partition.clients=1000000000 --out " + path("r"))),
                 "--partition.clients=1000000000: must be at most 1000000");
  for (const std::string more : {"--smoothing.m=1000000000", "--train.local.batch=1000000000"}) {
    const Outcome found =
        run(train(data, "--train.method=gaussian --out " + path("r") + " " + more));
    expect_refused(found, "the noisy images of one step take ");
    EXPECT_NE(found.err.find(more.substr(2)), std::string::npos) << found.err;
  }
}

TEST_F(HostileInputTest, ResumingATrainingRemovesNothingOfTheUsers) {
  const std::string data = write_tiny_data(), out = " --out " + path("r");
  ASSERT_EQ(run(train(data, "--train.rounds=2" + out)).status, 0);
  fs::remove(path("r/DONE"));
  write_file(path("r/notes.tmpl.md"), "mine");
  write_file(path("r/rounds.tsv.tmp123"), "a kill's");
  fs::create_directories(path("r/my.tmp/inside"));
  ASSERT_EQ(run(train(data, "--train.rounds=2 --resume" + out)).status, 0);
  EXPECT_TRUE(fs::exists(path("r/notes.tmpl.md")));
  EXPECT_TRUE(fs::exists(path("r/my.tmp/inside")));
  EXPECT_FALSE(fs::exists(path("r/rounds.tsv.tmp123")));
}

}  // namespace
}  // namespace fedsmooth
