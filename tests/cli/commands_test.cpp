// The commands other than certify, as a user runs them.
#include <gtest/gtest.h>
#include <png.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "fedsmooth/data/sources.h"
#include "tests/cli/program.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class CommandsTest : public ProgramTest {
 protected:
  std::string make_model() {
    const std::string model = path("model.safetensors");
    EXPECT_EQ(std::system((std::string(FEDSMOOTH_NEAREST_MEAN) + " " + model).c_str()), 0);
    return model;
  }

  // Image `index` of the test set as a PNG file.
  std::string write_png(int64_t index, const std::string& name) {
    const Dataset data = make_shapes(Split::kTest, index + 1, 0);
    const at::Tensor pixels = data.images[index].permute({1, 2, 0}).contiguous();
    png_image image = {};
    image.version = PNG_IMAGE_VERSION;
    image.width = image.height = 32;
    image.format = PNG_FORMAT_RGB;
    EXPECT_NE(png_image_write_to_file(&image, path(name).c_str(), 0, pixels.data_ptr(), 0, nullptr),
              0);
    return path(name);
  }
};

TEST_F(CommandsTest, HelpIsEverywhere) {
  for (const std::string command :
       {"", "certify", "predict", "recertify", "merge", "plot", "report", "show", "bench"}) {
    const Outcome help = run(command + " --help");
    EXPECT_EQ(help.status, 0) << command;
    EXPECT_NE(help.out.find(command.empty() ? "certify" : "Examples"), std::string::npos)
        << command;
  }
  EXPECT_EQ(run("--version").out.rfind("fedsmooth 0.", 0), 0U);
}

TEST_F(CommandsTest, UnknownCommandsAreRefused) {
  EXPECT_EQ(run("").status, 2);
  EXPECT_EQ(run("cretify x").status, 2);
}

TEST_F(CommandsTest, ShowFillsInTheDefaultsAndReadsThemBack) {
  write_file(path("e.toml"), "seed = 5\n[certify]\nn = 1_000\n");
  const Outcome shown = run("show " + path("e.toml") + " --data.name shapes --certify.every=7");
  ASSERT_EQ(shown.status, 0) << shown.err;
  for (const std::string line : {"seed = 5", "n = 1000", "name = \"shapes\"", "every = 7",
                                 "alpha = 0.001", "radius = \"one-sided\""}) {
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
  const std::string model = make_model(), png = write_png(3, "x.png");
  const Outcome by_file = run("predict " + model + " " + png + " --n 500 --json");
  const Outcome by_index = run("predict " + model + " 3 --data.name=shapes --n 500 --json");
  ASSERT_EQ(by_file.status, 0) << by_file.err;
  ASSERT_EQ(by_index.status, 0) << by_index.err;
  const auto a = nlohmann::json::parse(by_file.out)[0], b = nlohmann::json::parse(by_index.out)[0];
  EXPECT_EQ(a["votes"].size(), 10U);
  EXPECT_EQ(a["class"], b["class"]);
}

TEST_F(CommandsTest, PredictRefusesTheUsersMistakes) {
  const std::string model = make_model(), png = write_png(0, "x.png");
  expect_refused(run("predict " + model + " " + png + " --n 10"), "at least 11");
  expect_refused(run("predict " + model + " " + path("none.png")), "no such file");
  expect_refused(run("predict " + model + " 5000 --data.name=shapes"), "0 to 1999");
  write_file(path("text.png"), "not an image");
  expect_refused(run("predict " + model + " " + path("text.png")), "text.png");
}

TEST_F(CommandsTest, ReportAndPlotDraw) {
  if (std::system("command -v gnuplot >/dev/null") != 0) GTEST_SKIP() << "no gnuplot";
  const std::string model = make_model();
  ASSERT_EQ(run("certify " + model + " --data.name=shapes --every 200 --n 500 --out " +
                path("run/certificates.tsv"))
                .status,
            0);
  ASSERT_EQ(run("report " + path("run")).status, 0);
  EXPECT_NE(read_file(path("run/report.html")).find("<svg"), std::string::npos);
  for (const std::string figure : {"f.svg", "f.pdf", "f.png"}) {
    EXPECT_EQ(run("plot " + path("run") + " --out " + path(figure)).status, 0);
    EXPECT_GT(fs::file_size(path(figure)), 1000U);
  }
  expect_refused(run("plot " + path("run") + " --out " + path("f.bmp")), ".bmp");
  expect_refused(run("plot " + path("none") + " --out " + path("g.svg")), "no certificates here");
  expect_refused(run("report " + path("run") + " --certify.n=3"), "reads no experiment");
}

TEST_F(CommandsTest, BenchPrintsJson) {
  const Outcome bench = run("bench certify --model.name=small --threads 1");
  ASSERT_EQ(bench.status, 0) << bench.err;
  EXPECT_GT(nlohmann::json::parse(bench.out)["samples_per_second"], 0);
}

}  // namespace
}  // namespace fedsmooth
