// The commands other than certify, as a user runs them.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fedsmooth/data/sources.h"
#include "fedsmooth/model/model.h"
#include "fedsmooth/records/attacks.h"
#include "fedsmooth/records/certificate_file.h"
#include "fedsmooth/records/clients.h"
#include "fedsmooth/records/rounds.h"
#include "tests/cli/program.h"
#include "tests/layers.h"
#include "tests/member_models.h"
#include "tests/nearest_mean.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class CommandsTest : public ProgramTest {
 protected:
  std::string make_model() {
    const std::string model = path("model.safetensors");
    write_nearest_mean(model);
    return model;
  }

  // Image `index` of the test set as a PNG file.
  std::string write_image(int64_t index, const std::string& name) {
    write_png(make_shapes(Split::kTest, index + 1, 0).images[index], name);
    return path(name);
  }

  // `certify` on ten images of the built-in data, into `table`.
  std::string certify(const std::string& model, const std::string& more, const std::string& table) {
    return "certify " + model + " --data.name=shapes --every 200 --n 500 " + more + " --out " +
           path(table);
  }
};

class SlowCommandsTest : public CommandsTest {};

TEST_F(CommandsTest, HelpIsEverywhere) {
  for (const std::string command :
       {"", "train", "certify", "predict", "conformal", "attack", "recertify", "merge", "plot",
        "report", "sweep", "partition", "show", "data", "bench", "completion"}) {
    const Outcome help = run(command + " --help");
    EXPECT_EQ(help.status, 0) << command;
    EXPECT_NE(help.out.find("Examples"), std::string::npos) << command;
  }
  EXPECT_EQ(run("--version").out.rfind("fedsmooth 0.", 0), 0U);
}

TEST_F(CommandsTest, HelpOffersTheExperimentOnlyWhereItIsRead) {
  for (const std::string command : {"train", "certify", "predict", "conformal", "attack", "sweep",
                                    "partition", "show", "bench"}) {
    EXPECT_NE(run(command + " --help").out.find("Any key"), std::string::npos) << command;
  }
  for (const std::string command : {"merge", "recertify", "plot", "report", "data", "completion"}) {
    EXPECT_EQ(run(command + " --help").out.find("Any key"), std::string::npos) << command;
  }
}

TEST_F(CommandsTest, WithoutArgumentsItPrintsTheCommands) {
  const Outcome alone = run("");
  EXPECT_EQ(alone.status, 0);
  for (const char* name : {"train", "certify", "predict", "attack", "sweep", "report"}) {
    EXPECT_NE(alone.out.find(std::string("\n  ") + name + " "), std::string::npos) << name;
  }
}

TEST_F(CommandsTest, UnknownCommandsAreRefused) {
  expect_refused(run("cretify x"), "cretify: no such command; did you mean \"certify\"?");
  expect_refused(run("entirely-different"), "entirely-different: no such command");
  expect_refused(run("completion csh"), "completion csh: there are bash, fish, zsh and man");
}

TEST_F(CommandsTest, UnknownOptionsAreRefused) {
  expect_refused(run("plot x --uot f.svg"), "--uot: unknown option; did you mean --out?");
  expect_refused(run("report x --certify.n=3"), "report reads no experiment");
  write_file(path("e.toml"), "");
  expect_refused(run("show " + path("e.toml") + " more"), "more: unexpected argument");
  expect_refused(run("show " + path("e.toml") + " --certify.n"), "--certify.n: needs a value");
}

TEST_F(CommandsTest, EveryCommandChecksTheDevice) {
  for (const std::string command :
       {"train x", "certify x", "predict x 0", "attack x", "recertify x", "merge x", "plot x",
        "report x", "sweep x", "partition x", "show x", "bench certify"}) {
    expect_refused(run(command + " --device tpu"), "--device=tpu: must be auto, cpu or cuda");
  }
}

TEST_F(CommandsTest, TheLastOverrideCounts) {
  const std::string model = make_model();
  ASSERT_EQ(run(certify(model, "--certify.n=300 --n 200", "a.tsv")).status, 0);
  ASSERT_EQ(run(certify(model, "--n 200 --certify.n 300", "b.tsv")).status, 0);
  EXPECT_EQ(read_certificates(path("a.tsv"))[0].certificate.counts.n, 200);
  EXPECT_EQ(read_certificates(path("b.tsv"))[0].certificate.counts.n, 300);
}

TEST_F(CommandsTest, OverridesMayStandBeforeTheArguments) {
  write_file(path("e.toml"), "");
  const Outcome shown = run("show --certify.every 7 --data.root= " + path("e.toml"));
  ASSERT_EQ(shown.status, 0) << shown.err;
  EXPECT_NE(shown.out.find("every = 7  # default: 20\n"), std::string::npos);
  EXPECT_NE(shown.out.find("root = \"\"  # default: \"data\"\n"), std::string::npos);
}

TEST_F(CommandsTest, OutputThatIsLostIsTold) {
  write_file(path("e.toml"), "");
  for (const std::string& command : {"show " + path("e.toml"), std::string("certify --help")}) {
    const std::string line =
        std::string(FEDSMOOTH_PROGRAM) + " " + command + " >/dev/full 2>" + path("lost");
    EXPECT_EQ(WEXITSTATUS(std::system(line.c_str())), 2) << command;
    EXPECT_EQ(read_file(path("lost")).rfind("stdout: cannot be written", 0), 0U);
  }
}

TEST_F(CommandsTest, TroubleWithFilesIsNoBug) {
  // A name too long for the system makes std::filesystem throw, for any user.
  const std::string name(300, 'x');
  expect_refused(run("report " + name), name + ": ");
}

TEST_F(CommandsTest, ShowFillsInTheDefaultsAndReadsThemBack) {
  write_file(path("e.toml"), "seed = 5\n[certify]\nn = 1_000\n");
  const Outcome shown = run("show " + path("e.toml") + " --data.name shapes --certify.every=7");
  ASSERT_EQ(shown.status, 0) << shown.err;
  for (const std::string line :
       {"seed = 5  # default: 0", "n = 1000  # default: 100000",
        "name = \"shapes\"  # default: \"cifar10\"", "every = 7  # default: 20", "alpha = 0.001",
        "radius = \"one-sided\""}) {
    EXPECT_NE(shown.out.find(line + "\n"), std::string::npos) << line;
  }
  write_file(path("again.toml"), shown.out);
  EXPECT_EQ(run("show " + path("again.toml")).out, shown.out);
}

TEST_F(CommandsTest, ShowNamesTheLineOfAMistake) {
  write_file(path("e.toml"), "seed = 5\n[certify]\nalpa = 0.1\n");
  expect_refused(run("show " + path("e.toml")),
                 "e.toml:3: unknown key \"certify.alpa\"; did you mean \"certify.alpha\"?");
}

TEST_F(CommandsTest, PredictTakesFilesAndIndices) {
  const std::string model = make_model(), png = write_image(3, "x.png");
  const Outcome by_file = run("predict " + model + " " + png + " --n 500 --json");
  const Outcome by_index = run("predict " + model + " 3 --data.name=shapes --n 500 --json");
  ASSERT_EQ(by_file.status, 0) << by_file.err;
  ASSERT_EQ(by_index.status, 0) << by_index.err;
  const auto a = nlohmann::json::parse(by_file.out)[0], b = nlohmann::json::parse(by_index.out)[0];
  EXPECT_EQ(a["votes"].size(), 10U);
  EXPECT_EQ(a["class"], b["class"]);
}

TEST_F(CommandsTest, PredictSaysTheSameOfAFileAnywhere) {
  const std::string model = make_model(), x = write_image(3, "x.png"), y = write_image(4, "y.png");
  const auto predict = [&](const std::string& images) {
    const Outcome done = run("predict " + model + " " + images + " --n 500 --json");
    EXPECT_EQ(done.status, 0) << done.err;
    return nlohmann::json::parse(done.out);
  };
  const auto alone = predict(x)[0]["votes"];
  EXPECT_EQ(predict(y + " " + x)[1]["votes"], alone);
  fs::copy_file(x, path("copy.png"));
  EXPECT_EQ(predict(path("copy.png"))[0]["votes"], alone);
}

TEST_F(CommandsTest, PredictRefusesTheUsersMistakes) {
  const std::string model = make_model(), png = write_image(0, "x.png");
  expect_refused(run("predict " + model + " " + png + " --n 10"), "at least 11");
  expect_refused(run("predict " + model + " " + path("none.png")), "no such file");
  expect_refused(run("predict " + model + " 5000 --data.name=shapes"), "0 to 1999");
  write_file(path("text.png"), "not an image");
  expect_refused(run("predict " + model + " " + path("text.png")), "text.png");
  expect_refused(run("predict " + model + " ''"), "name of an image is empty");
  write_png(Array({3, 16, 16}, Array::Type::kByte), "small.png");
  const Outcome mixed = run("predict " + model + " " + png + " " + path("small.png"));
  expect_refused(mixed, "small.png: differs in size");
  EXPECT_EQ(mixed.out, "");
}

TEST_F(CommandsTest, PredictAnswersInWords) {
  const std::string model = make_model();
  const std::string image = model + " 3 --data.name=shapes --n 500";
  const Outcome answer = run("predict " + image);
  const auto found = nlohmann::json::parse(run("predict --json " + image).out)[0];
  const auto label = found["label"].get<std::string>();
  EXPECT_EQ(answer.out.rfind("image 3 (label " + label + "): ", 0), 0U) << answer.out;
  EXPECT_NE(answer.out.find(" of 500 votes"), std::string::npos) << answer.out;
  EXPECT_NE(answer.err.find(" certify " + image + "    # proves radii"), std::string::npos)
      << answer.err;
}

TEST_F(CommandsTest, CertifiesImageFiles) {
  const std::string model = make_model(), png = write_image(7, "x.png");
  const std::string certify = "certify " + model + " " + png + " --n 1000 --seed=3";
  const auto found = nlohmann::json::parse(run(certify + " --json").out)[0];
  EXPECT_EQ(found["n"], 1000);
  EXPECT_EQ(found["norm"], "l2");
  EXPECT_TRUE(found["label"].is_null()) << found["label"];  // only images of the test set have one
  EXPECT_EQ(found["seed"], "3");
  const double radius = found["radius"];
  ASSERT_GT(radius, 0);
  // Rounded down, like all radii that are printed.
  const Outcome words = run(certify);
  EXPECT_EQ(words.out,
            fmt::format("{}: {}, proved within {:.2f}\n", png, found["class"].get<std::string>(),
                        std::floor(radius * 100) / 100));
  EXPECT_FALSE(fs::exists(path("model.certificates.tsv")));
  expect_refused(run(certify + " --out " + path("t.tsv")), "--out: is for the test set");
}

// Image files are RGB.
TEST_F(CommandsTest, PredictsGreyFilesByAModelOfOneChannel) {
  const Network network = {"grey", {1, 4, 4}, {normalize({0.5}, {0.25}), linear(3, true)}};
  Weights weights = initial_weights(network, make_key(0, Purpose::kWeights));
  write_file(path("grey.safetensors"), format_model({network, weights, 0.25, {}}));
  Array pixels({3, 4, 4}, Array::Type::kByte);
  for (int64_t i = 0; i < pixels.count(); ++i) pixels.bytes()[i] = 10 * (i % 16);
  write_png(pixels, "grey.png");
  const std::string predict = "predict " + path("grey.safetensors") + " ";
  const Outcome grey = run(predict + path("grey.png"));
  EXPECT_EQ(grey.status, 0) << grey.err;
  EXPECT_EQ(grey.out.rfind(path("grey.png") + ": class ", 0), 0U) << grey.out;
  pixels.bytes()[0] = 1;
  write_png(pixels, "colour.png");
  expect_refused(run(predict + path("colour.png")), "made for images [1, 4, 4]");
}

TEST_F(CommandsTest, AModelFileNeedsTheNameOfItsData) {
  const std::string model = make_model();
  for (const std::string& command :
       {"certify " + model, "attack " + model, "predict " + model + " 0"}) {
    expect_refused(run(command),
                   "model.safetensors: does not say which data set it is for; give --data.name");
  }
}

TEST_F(CommandsTest, ReportPrintsItsNumbersAsJson) {
  if (std::system("command -v gnuplot >/dev/null") != 0) GTEST_SKIP() << "no gnuplot";
  ASSERT_EQ(run(certify(make_model(), "", "run/certificates.tsv")).status, 0);
  const auto certified = nlohmann::json::parse(run("report --json " + path("run")).out)["results"];
  ASSERT_EQ(certified.size(), 1U);
  EXPECT_EQ(certified[0]["name"], "run");
  EXPECT_EQ(certified[0]["images"], 10);
  const auto& at_zero = certified[0]["certified_accuracy"][0];
  EXPECT_EQ(at_zero["radius"], 0);
  EXPECT_LT(at_zero["low"], at_zero["high"]);
}

TEST_F(CommandsTest, RecertifyKeepsTheKindOfRadius) {
  const std::string model = make_model();
  for (const std::string kind : {"one-sided", "multiclass"}) {
    ASSERT_EQ(run(certify(model, "--radius " + kind, kind + ".tsv")).status, 0);
    const std::string again = "again-" + kind;
    ASSERT_EQ(
        run("recertify " + path(kind + ".tsv") + " --alpha 0.05 --out " + path(again + ".tsv"))
            .status,
        0);
    const auto sidecar = nlohmann::json::parse(read_file(path(again + ".json")));
    EXPECT_EQ(sidecar["identity"]["radius"], kind);
  }
  expect_refused(run("recertify " + path("multiclass.tsv")), "nothing to change; give --alpha");
  expect_refused(run("recertify " + path("multiclass.tsv") + " --alpha 2"),
                 "--alpha=2: must be at least 1e-50 and below 1");
}

TEST_F(CommandsTest, ReportAndPlotDraw) {
  if (std::system("command -v gnuplot >/dev/null") != 0) GTEST_SKIP() << "no gnuplot";
  const std::string model = make_model();
  ASSERT_EQ(run(certify(model, "", "run/certificates.tsv")).status, 0);
  ASSERT_EQ(run("report " + path("run")).status, 0);
  EXPECT_NE(read_file(path("run/report.html")).find("<svg"), std::string::npos);
  for (const std::string figure : {"f.svg", "f.pdf", "f.png"}) {
    EXPECT_EQ(run("plot " + path("run") + " --out " + path(figure)).status, 0);
    EXPECT_GT(fs::file_size(path(figure)), 1000U);
  }
  expect_refused(run("plot " + path("run") + " --out " + path("f.bmp")), ".bmp");
  expect_refused(run("plot " + path("none") + " --out " + path("g.svg")),
                 "no such file or folder; give a run folder");
  expect_refused(run("report " + path("none")), "no such file or folder; give a run folder");
  expect_refused(run("report " + path("run") + " --certify.n=3"), "reads no experiment");
}

TEST_F(CommandsTest, ReportShowsTestImagesOfTheDataThatWasCertified) {
  const std::string model = make_model(), data = write_tiny_data();
  forget_classes(model);
  ASSERT_EQ(run("certify " + model + data + "--every 1 --n 500 --out " + path("t.tsv")).status, 0);
  const auto page = [&](const std::string& more) {
    const Outcome report = run("report " + path("t.tsv") + " --out " + path("p.html") + more);
    EXPECT_EQ(report.status, 0) << report.err;
    return read_file(path("p.html"));
  };
  const std::string with = page(" --data " + path("data"));
  EXPECT_NE(with.find("<h2>What σ means</h2>"), std::string::npos);
  EXPECT_NE(with.find("<img src=\"data:image/png;base64,"), std::string::npos);
  EXPECT_EQ(with.find("No test images are shown"), std::string::npos);

  const std::string without = page(" --data " + path("none"));
  EXPECT_NE(without.find("No test images are shown: " + path("none")), std::string::npos);
  EXPECT_EQ(without.find("<img"), std::string::npos);
  // Another image in the place of the one that was certified.
  for (const auto& entry : fs::recursive_directory_iterator(path("data/test"))) {
    if (entry.is_regular_file()) {
      write_png(Array({3, 32, 32}, Array::Type::kByte),
                fs::relative(entry.path(), folder_).string());
      break;
    }
  }
  EXPECT_NE(page(" --data " + path("data")).find("is not the one that was certified"),
            std::string::npos);
}

TEST_F(CommandsTest, ReportAndPlotTakeARunThatIsNotCertified) {
  if (std::system("command -v gnuplot >/dev/null") != 0) GTEST_SKIP() << "no gnuplot";
  fs::create_directories(path("run"));
  write_file(path("run/rounds.tsv"), round_header() + format_round({1, 2.3, 0.1, 1, 1, 0.1}) +
                                         format_round({2, 2.2, 0.2, 1, 1, 0.1}));
  const Outcome report = run("report " + path("run"));
  ASSERT_EQ(report.status, 0) << report.err;
  EXPECT_NE(report.out.find("not certified yet"), std::string::npos);
  EXPECT_NE(read_file(path("run/report.html")).find("run has trained for 2 rounds"),
            std::string::npos);
  for (const std::string what : {"training", "attack"}) {
    const std::string figure = path(what + ".svg");
    ASSERT_EQ(run("plot " + path("run") + " --what " + what + " --out " + figure).status, 0);
    EXPECT_EQ(read_file(figure).find("x_adv") != std::string::npos, what == "attack");
  }
  const std::string plot = "plot " + path("run") + " --out " + path("f.svg");
  expect_refused(run(plot), "run: not certified yet; `" + std::string(FEDSMOOTH_PROGRAM) +
                                " certify " + path("run") + "` does it");
  expect_refused(run(plot + " --what loss"), "--what=loss: must be certified, training or attack");
  write_file(path("run/rounds.tsv"), "nonsense\n");
  expect_refused(run("report " + path("run")), "rounds.tsv:1: not the expected header");
}

TEST_F(CommandsTest, ReportReadsAllTablesOfAFolderButATableAlone) {
  if (std::system("command -v gnuplot >/dev/null") != 0) GTEST_SKIP() << "no gnuplot";
  ASSERT_EQ(run(certify(make_model(), "", "run/certificates.tsv")).status, 0);
  write_file(path("run/rounds.tsv"), round_header() + format_round({1, 2.3}));
  write_file(path("run/clients.tsv"), format_clients({{5, std::vector<int64_t>(10, 3)}}));
  write_file(path("run/attack.tsv"), attack_header() + format_attack({0, 1, 0.5, 1, 0.5}));
  fs::copy_file(path("run/certificates.tsv"), path("run/copy.tsv"));
  const std::string folder = run("report " + path("run")).out;
  const std::string table = run("report " + path("run/certificates.tsv")).out;
  const std::string copy = run("report " + path("run/copy.tsv")).out;
  for (const std::string fact : {"(client 5, of ", "under attack", "rounds"}) {
    EXPECT_NE(folder.find(fact), std::string::npos) << fact;
    EXPECT_NE(table.find(fact), std::string::npos) << fact;
    EXPECT_EQ(copy.find(fact), std::string::npos) << fact;
  }
}

TEST_F(CommandsTest, BenchRefusesSeveralGroups) {
  for (const std::string what : {"train", "certify"}) {
    expect_refused(run("bench " + what + " --groups.count=3"),
                   "groups.count=3: bench measures one");
  }
}

TEST_F(SlowCommandsTest, BenchPrintsJson) {
  const Outcome bench = run("bench certify --model.name=small --threads 1");
  ASSERT_EQ(bench.status, 0) << bench.err;
  EXPECT_GT(nlohmann::json::parse(bench.out)["samples_per_second"], 0);
}

}  // namespace
}  // namespace fedsmooth
