#include "fedsmooth/jobs/training/teacher.h"

#include <gtest/gtest.h>

#include "fedsmooth/base/file.h"
#include "fedsmooth/model/safetensors.h"
#include "tests/jobs/job_folder.h"

namespace fedsmooth {
namespace {

namespace fs = std::filesystem;

class TeacherTest : public TrainingJobTest {
 protected:
  TeacherTest() {
    experiment_.data.held_out = 9920;  // 80 are left
    experiment_.train.method = Method::kCatRs;
    experiment_.objective.teacher_votes = 20;
  }

  fs::path votes_of(const std::string& name) const { return path(name) / "teacher.safetensors"; }
};

TEST_F(TeacherTest, IsTrainedFirstAndKept) {
  const std::string whole = train("whole");
  const Safetensors kept = parse_safetensors(read_file(votes_of("whole")), "votes");
  const Array& votes = kept.tensors.at("votes");
  ASSERT_EQ(votes.sizes(), (Sizes{80, 10}));
  for (int64_t i = 0; i < 80; ++i) {
    double sum = 0;
    for (int64_t c = 0; c < 10; ++c) sum += votes[i].floats()[c];
    EXPECT_NEAR(sum, 1, 1e-6) << i;
  }

  int left = 1;  // rounds of the run itself
  context_.stopped = [&] { return left == 0; };
  const auto count = [&](const RoundRow&) { --left; };
  EXPECT_THROW(jobs::train({experiment_, path("cut"), false, count}, context_), Interrupted);
  context_.stopped = [] { return false; };
  EXPECT_EQ(train("cut"), whole);
  EXPECT_EQ(read_file(votes_of("cut")), read_file(votes_of("whole")));
}

TEST_F(TeacherTest, MayBeAModelThatIsThere) {
  Experiment gaussian = experiment_;
  gaussian.train.method = Method::kGaussian;
  gaussian.objective = {};
  jobs::train({gaussian, path("teacher")}, context_);
  experiment_.objective.teacher = path("teacher").string();
  const std::string by_run = train("a");
  // The same experiment at the same sigma trains the same teacher by itself.
  experiment_.objective.teacher = "auto";
  EXPECT_EQ(train("b"), by_run);
}

TEST_F(TeacherTest, VotesOfATeacherThatWasReplacedAreRefused) {
  Experiment gaussian = experiment_;
  gaussian.train.method = Method::kGaussian;
  gaussian.objective = {};
  jobs::train({gaussian, path("teacher")}, context_);
  gaussian.seed = 5;
  jobs::train({gaussian, path("another")}, context_);
  experiment_.objective.teacher = (path("teacher") / "model.safetensors").string();
  train("run");
  fs::remove(path("run") / "DONE");
  write_file(experiment_.objective.teacher, read_file(path("another") / "model.safetensors"));
  expect_error([&] { train("run"); }, "teacher.safetensors: is of another teacher");
}

TEST_F(TeacherTest, VotesOfAnotherExperimentAreRefused) {
  train("run");
  experiment_.seed = 9;
  train("other");
  experiment_.seed = 0;
  write_file(votes_of("run"), read_file(votes_of("other")));
  fs::remove(path("run") / "DONE");
  expect_error([&] { train("run"); }, "teacher.safetensors: is of another experiment: seed is 9");
}

TEST_F(TeacherTest, VotesOfAnotherTeacherAreRefused) {
  train("run");
  fs::remove(path("run") / "DONE");
  write_file(votes_of("run"), format_safetensors({{{"votes", Array({80, 10})}}, {}}));
  expect_error([&] { train("run"); }, "teacher.safetensors: is of another teacher");
}

}  // namespace
}  // namespace fedsmooth
