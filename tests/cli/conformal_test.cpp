// Conformal sets as a user calibrates and asks for them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/certify_program.h"

namespace fedsmooth {
namespace {

class ConformalProgramTest : public CertifyProgramTest {};

TEST_F(ConformalProgramTest, CalibratesAndAnswersWithSets) {
  const std::string data = " --data.name=shapes --device cpu ";
  const Outcome made = run("conformal " + model() + data + "--epsilon 0.1 --seed 3");
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_NE(made.out.find("on 1000 other images, unmoved: coverage"), std::string::npos);
  const std::string file = path("model.conformal.json");
  const Outcome sets = run("--json predict " + model() + " 0 1 2 --sets " + file + data);
  ASSERT_EQ(sets.status, 0) << sets.err;
  EXPECT_EQ(nlohmann::json::parse(sets.out).size(), 3U);
  EXPECT_NE(run("predict " + model() + " 0 --sets " + file + data).out.find("image 0 (label "),
            std::string::npos);
  expect_refused(
      run("conformal " + model() + data + "--images 20 --epsilon 0.25 --out " + path("x")),
      "20 calibration images are too few; at least");
  write_file(path("bad.json"), "{}");
  expect_refused(run("predict " + model() + " 0 --sets " + path("bad.json") + data),
                 "is not a file of conformal sets");
}

TEST_F(ConformalProgramTest, ReportsShowTheSetsOfARun) {
  std::filesystem::create_directories(path("run"));
  std::filesystem::copy(model(), path("run/model.safetensors"));
  ASSERT_EQ(run(certify("--out " + path("run/certificates.tsv"))).status, 0);
  const Outcome made = run("conformal " + model() +
                           " --data.name=shapes --device cpu --epsilon 0.1 --seed 3 --json --out " +
                           path("run/conformal.json"));
  ASSERT_EQ(made.status, 0) << made.err;
  auto calibrated = nlohmann::json::parse(made.out);
  EXPECT_EQ(calibrated["seed"], "3");
  calibrated.erase("file");
  const Outcome report = run("--json report " + path("run"));
  ASSERT_EQ(report.status, 0) << report.err;
  EXPECT_EQ(nlohmann::json::parse(report.out)["results"][0]["conformal"], calibrated);
  const std::string page = read_file(path("run/report.html"));
  EXPECT_NE(page.find("<dt>conformal sets</dt>"), std::string::npos);
  EXPECT_NE(page.find("of 1000 other images, unmoved, "), std::string::npos);
}

}  // namespace
}  // namespace fedsmooth
