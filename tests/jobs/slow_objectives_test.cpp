// Every objective, trained on the built-in images, certifies more than training without noise does.
#include <gtest/gtest.h>

#include "fedsmooth/fedsmooth.h"
#include "fedsmooth/records/certificate_file.h"
#include "tests/jobs/job_folder.h"

namespace fedsmooth {
namespace {

class SlowObjectivesTest : public JobTest, public testing::WithParamInterface<std::string> {
 protected:
  static Experiment experiment_for(const std::string& method) {
    Experiment e = small_experiment();
    set_key(e, "train.method", method);
    e.data.held_out = 8000;  // 2,000 are left
    e.partition = {.kind = PartitionKind::kIid, .clients = 4, .samples_per_client = 400};
    e.smoothing = {.sigma = 0.5, .m = 2};
    e.attack = {.steps = 2, .epsilon = 0.5};
    e.train.clients_per_round = 4;
    e.train.rounds = 15;
    e.train.local = {.steps = 15, .batch = 16, .learning_rate = 0.05};
    e.certify.n = 500;
    e.certify.every = 40;  // 50 images
    return e;
  }

  // Average certified radius; what is wrong or abstained on counts as 0.
  double radius_of(const std::string& method) {
    context_.threads = 2;
    Experiment e = experiment_for(method);
    if (method == "cat-rs") e.objective.teacher_votes = 100;
    jobs::train({e, path(method)}, context_);
    const auto table = jobs::certify({.path = path(method).string()}, {}, context_);
    double sum = 0;
    const auto rows = read_certificates(table);
    for (const CertificateRow& row : rows) {
      if (row.certificate.predict == row.label) sum += row.certificate.radius;
    }
    return sum / static_cast<double>(rows.size());
  }
};

TEST_P(SlowObjectivesTest, CertifiesMoreThanStandard) {
  static const double plain = radius_of("standard");
  const double robust = radius_of(GetParam());
  EXPECT_GT(robust, plain + 0.05) << plain;
  RecordProperty("radius", std::to_string(robust));
}

INSTANTIATE_TEST_SUITE_P(All, SlowObjectivesTest,
                         testing::Values("gaussian", "smoothadv", "consistency", "stability",
                                         "macer", "smoothmix", "cat-rs", "sun"),
                         [](const auto& info) {
                           return info.param == "cat-rs" ? "catrs" : info.param;
                         });

}  // namespace
}  // namespace fedsmooth
