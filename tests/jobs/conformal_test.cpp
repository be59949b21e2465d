// Conformal sets: calibrated on one part of the images, tested on the others, answered by predict.
#include "fedsmooth/jobs/conformal.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fedsmooth/base/file.h"
#include "fedsmooth/engine/reference/reference_passes.h"
#include "fedsmooth/fedsmooth.h"
#include "tests/jobs/job_folder.h"
#include "tests/nearest_mean.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

class ConformalJobTest : public JobTest {
 protected:
  void SetUp() override {
    JobTest::SetUp();
    write_nearest_mean(path("model.safetensors"));
  }

  jobs::Calibrated calibrate(const std::string& out, int64_t images = 0, double coverage = 0.9,
                             Overrides more = {}) {
    more.insert(more.begin(), {{"data.name", "shapes"}, {"seed", "1"}});  // later ones win
    return jobs::calibrate({.path = path("model.safetensors").string(),
                            .coverage = coverage,
                            .images = images,
                            .out = out.empty() ? "" : path(out).string()},
                           more, context_);
  }
  std::vector<jobs::SetAnswer> sets(const std::string& file, const Overrides& more) {
    Overrides options = {{"data.name", "shapes"}};
    options.insert(options.end(), more.begin(), more.end());
    return jobs::predict_sets(
        {.path = path("model.safetensors").string(), .images = {"0", "1", "7"}}, path(file),
        options, context_);
  }
};

// The test images of `shapes`, of which every second has a wrong label.
Dataset read_half_wrong(const std::filesystem::path& root, Split split) {
  Dataset data = data_sources().find("shapes").read(root, split);
  for (int64_t i = 1; i < data.size(); i += 2) {
    data.labels[i] = (data.labels[i] + 1) % data.classes();
  }
  return data;
}

TEST_F(ConformalJobTest, CalibratesOnHalfOfTheTestImagesAndTestsOnTheOthers) {
  const jobs::Calibrated made = calibrate("");
  EXPECT_EQ(made.file, path("model.conformal.json"));
  EXPECT_EQ(made.calibration.subject.images, 1000);
  EXPECT_EQ(made.calibration.subject.seed, 1U);
  ASSERT_TRUE(made.calibration.test);
  EXPECT_EQ(made.calibration.test->images, 1000);
  // Images that nobody moved are covered more often than promised.
  EXPECT_GT(made.calibration.test->coverage, 0.95);
  EXPECT_GE(made.calibration.test->mean_size, made.calibration.test->coverage);
  EXPECT_LE(made.calibration.test->mean_size, 10);
  const ConformalCalibration read = read_conformal(made.file);
  EXPECT_EQ(read.quantile, made.calibration.quantile);
  EXPECT_EQ(read.subject.to_json(), made.calibration.subject.to_json());
  EXPECT_NE(refusal([&] { calibrate(""); }).find("exists; choose another --out"),
            std::string::npos);
  // A number of threads changes nothing.
  context_.threads = 2;
  EXPECT_EQ(calibrate("two.json").calibration.quantile, made.calibration.quantile);
}

TEST_F(ConformalJobTest, HeldOutImagesCalibrateAndTheTestSetIsLeft) {
  const jobs::Calibrated made = calibrate("h.json", 0, 0.9, {{"data.held_out", "200"}});
  EXPECT_EQ(made.calibration.subject.images, 200);
  EXPECT_EQ(made.calibration.subject.held_out, 200);
  ASSERT_TRUE(made.calibration.test);
  EXPECT_EQ(made.calibration.test->images, 2000);
}

// Images at equal distances would be of one kind where a file alternates between kinds.
TEST_F(ConformalJobTest, DrawsTheCalibrationImagesAtRandom) {
  data_sources().add({"half-wrong", read_half_wrong});
  const jobs::Calibrated made = calibrate("r.json", 0, 0.9, {{"data.name", "half-wrong"}});
  ASSERT_TRUE(made.calibration.test);
  EXPECT_GT(made.calibration.test->coverage, 0.9);
  const Overrides same_seed = {{"data.name", "half-wrong"}};
  EXPECT_EQ(calibrate("again.json", 0, 0.9, same_seed).calibration.quantile,
            made.calibration.quantile);
}

// One image for all, which has its likeliest class as label in training and its least likely one in
// the test set.
DataSource source_of_one_image(const Model& model) {
  const Dataset shapes = load_dataset({.name = "shapes"}, Split::kTest);
  const Array logits =
      reference_logits(model.network, model.weights, shapes.image(0).with_sizes({1, 3, 32, 32}));
  const auto [worst, best] = std::minmax_element(logits.floats(), logits.floats() + 10);
  const int64_t in_training = best - logits.floats(), in_tests = worst - logits.floats();
  return {"one-image", [=](const std::filesystem::path&, Split split) {
            Dataset data = shapes;
            data.images = shapes.images.pick(std::vector<int64_t>(shapes.size(), 0));
            for (int64_t& l : data.labels) l = split == Split::kTrain ? in_training : in_tests;
            return data;
          }};
}

TEST_F(ConformalJobTest, WarnsIfTheOtherImagesAreNotLikeThoseThatCalibrated) {
  data_sources().add(source_of_one_image(load_model(path("model.safetensors"))));
  const auto calibrate_on = [&](const std::string& data) {
    jobs::calibrate({.path = path("model.safetensors").string(),
                     .epsilon = 0,
                     .out = path(data + ".json").string()},
                    {{"data.name", data}, {"data.held_out", "500"}, {"certify.sigma", "0.01"}},
                    context_);
  };
  calibrate_on("shapes");
  EXPECT_EQ(warnings_.size(), 0U);
  calibrate_on("one-image");
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_NE(warnings_[0].find("fewer than of images like those that calibrated"),
            std::string::npos);
}

TEST_F(ConformalJobTest, RefusesHeldOutImagesOnWhichARunMayHaveTrained) {
  Experiment e = small_experiment();
  jobs::train({e, path("all")}, context_);
  e.data.held_out = 200;
  jobs::train({e, path("rest")}, context_);
  const auto on_run = [&](const std::string& run, const std::string& held_out,
                          const std::vector<std::string>& with = {}) {
    const std::string out = path(fmt::format("{}{}{}.json", run, held_out, with.size())).string();
    return jobs::calibrate({.path = path(run).string(), .out = out, .with = with},
                           {{"data.held_out", held_out}}, context_)
        .calibration.subject.images;
  };
  EXPECT_EQ(on_run("rest", "200"), 200);
  EXPECT_EQ(on_run("rest", "0"), 1000);
  EXPECT_EQ(on_run("all", "0"), 1000);
  for (const auto& [run, held_out] : {std::pair{"all", "200"}, {"rest", "400"}}) {
    const std::string what = std::string(run) + " was not trained on exactly the other images";
    expect_error([&] { on_run(run, held_out); }, what);
  }
  const std::string other = path("all").string();
  expect_error([&] { on_run("rest", "200", {other}); }, other + " was not trained on exactly");
  EXPECT_FALSE(std::filesystem::exists(path("all2000.json")));
}

TEST_F(ConformalJobTest, TooFewImagesAreRefusedWithTheNumberThatIsNeeded) {
  EXPECT_NE(
      refusal([&] { calibrate("f.json", 50); }).find("50 calibration images are too few; at least"),
      std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path("f.json")));
  EXPECT_NE(refusal([&] { calibrate("f.json", 2001); }).find("there are 2000 images"),
            std::string::npos);
  EXPECT_NE(refusal([&] { calibrate("f.json", 0, 1.0); }).find("coverage=1"), std::string::npos);
  EXPECT_FALSE(calibrate("all.json", 2000).calibration.test);
}

TEST_F(ConformalJobTest, PredictAnswersWithSets) {
  calibrate("c.json");
  const auto found = sets("c.json", {{"seed", "5"}}), again = sets("c.json", {{"seed", "5"}});
  ASSERT_EQ(found.size(), 3U);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].classes, again[i].classes);
    EXPECT_EQ(found[i].seed, 5U);
    EXPECT_EQ(found[i].class_names.size(), 10U);
  }
  EXPECT_NE(sets("c.json", {})[0].seed, sets("c.json", {})[0].seed);  // fresh ones
}

TEST_F(ConformalJobTest, FilesOfOtherModelsAndSettingsAreRefused) {
  const jobs::Calibrated made = calibrate("c.json");
  ConformalCalibration other = made.calibration;
  other.subject.model_sha256 = std::string(64, '0');
  write_conformal(path("other.json"), other);
  EXPECT_NE(refusal([&] { sets("other.json", {}); }).find("is about another model"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              sets("c.json", {{"certify.sigma", "0.5"}});
            }).find("leave them as they are"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              sets("c.json", {{"certify.noise", "exact"}});
            }).find("leave them as they are"),
            std::string::npos);
  other = made.calibration;
  other.subject.fingerprint = "another";
  write_conformal(path("logits.json"), other);
  EXPECT_NE(refusal([&] { sets("logits.json", {}); }).find("other logits"), std::string::npos);
  other.subject.base = "another machine";
  write_conformal(path("machine.json"), other);
  EXPECT_EQ(sets("machine.json", {}).size(), 3U);
  EXPECT_EQ(warnings_.size(), 1U);
  write_file(path("damaged.json"), "{\"fedsmooth\": 1");
  EXPECT_NE(refusal([&] { sets("damaged.json", {}); }), "(nothing was refused)");
}

}  // namespace
}  // namespace fedsmooth
