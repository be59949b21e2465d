// An attack asks the evaluator that counts its votes whether it is a function, as a certificate
// does.
#include "fedsmooth/jobs/certification/attacker.h"

#include <gtest/gtest.h>

#include "tests/refusal.h"
#include "tests/smoothing/classifiers.h"

namespace fedsmooth {
namespace {

// A classifier whose logits are `answer`, with everything that an attack without perturbation asks
// for.
class AttackerTest : public ::testing::Test {
 protected:
  AttackerTest() {
    subject_.f = fixed_batch(
        [this](const Array& images) {
          return Array::full({images.size(0), 2}, answer_);
        },
        2);
    subject_.sigma = 0.25;
    subject_.fingerprint = check_is_function(subject_.f, data_.shape()).fingerprint;
  }

  float answer_ = 0;
  const Dataset data_ = load_dataset({.name = "shapes"}, Split::kTest);
  jobs::ModelUnderTest subject_;
  const jobs::AttackJob job_{subject_,
                             data_,
                             {0, 1},
                             {0.0},
                             100,
                             [] { return false; },
                             [] { return DifferentiableClassifier{}; }};
};

TEST_F(AttackerTest, FindsAChangeBetweenProbes) {
  jobs::Attacker attacker(job_);
  EXPECT_EQ(attacker.attack(0).size(), 1U);
  attacker.probe();
  attacker.attack(1);
  answer_ = 1;
  EXPECT_NE(refusal([&] { attacker.probe(); }).find("answers changed"), std::string::npos);
}

TEST_F(AttackerTest, CountsByTheSubjectsClassifierOnly) {
  answer_ = 1;
  EXPECT_THROW(jobs::Attacker{job_}, ClassifierChanged);
}

TEST_F(AttackerTest, RefusesWhatIsNoFunction) {
  subject_.f = fixed_batch(
      [this](const Array& images) {
        return Array::full({images.size(0), 2}, ++answer_);
      },
      2);
  EXPECT_NE(refusal([&] { jobs::Attacker{job_}; }).find("different logits for the same images"),
            std::string::npos);
}

TEST_F(AttackerTest, AProbeTakesAHundredthOfTheVotesAtMost) {
  const jobs::Attacker attacker(job_);
  EXPECT_LE(subject_.f.batch * 100, attacker.images_per_probe() * job_.n);
}

}  // namespace
}  // namespace fedsmooth
