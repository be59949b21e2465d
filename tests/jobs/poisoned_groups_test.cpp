// Certificates against malicious clients beside clients that really are malicious. A run is trained
// with honest clients and once more with m bad ones in m groups; both tables use the same noise.
// Then the theorem holds for each copy, without any probability: a copy whose gap is at least 2 m
// in one run has the same answer in the other.
#include <gtest/gtest.h>

#include "fedsmooth/fedsmooth.h"
#include "fedsmooth/records/certificate_file.h"
#include "fedsmooth/smoothing/statistics.h"
#include "tests/jobs/job_folder.h"

namespace fedsmooth {
namespace {

using Rows = std::vector<CertificateRow>;

constexpr int64_t kGroups = 7;
constexpr double kAlpha = 0.001;

struct Comparison {
  int64_t certified = 0;     // claims against m malicious clients at radius 0
  int64_t contradicted = 0;  // of these, those for which the other run answers another class
  int64_t lost = 0;          // images with fewer votes in the other run than are safe from m
};

// Compares what `claims` certifies against `malicious` clients with what `other` answers.
Comparison compare(const Rows& claims, const Rows& other, int64_t malicious) {
  Comparison found;
  for (size_t i = 0; i < claims.size(); ++i) {
    const Counts& counts = claims[i].certificate.counts;
    if (counts.gaps.empty()) continue;
    const int64_t safe = copies_safe_from(counts.gaps, malicious);
    found.lost += votes_for(other[i].certificate.counts.votes, counts.selected) < safe;
    if (!(binomial_lower_bound(safe, counts.n, kAlpha) > 0.5)) continue;
    ++found.certified;
    found.contradicted += !other[i].abstained() && other[i].certificate.predict != counts.selected;
  }
  return found;
}

class SlowPoisonedGroupsTest : public TrainingJobTest {
 protected:
  void SetUp() override {
    TrainingJobTest::SetUp();
    Experiment& e = experiment_;
    e.groups.count = kGroups;
    e.partition.clients = 28;
    e.partition.samples_per_client = 500;
    e.data.augment = false;
    e.smoothing = {.sigma = 0.05, .m = 1};
    e.train.method = Method::kGaussian;
    e.train.rounds = 6;
    e.train.local.steps = 80;
    e.train.local.batch = 16;
    e.train.local.learning_rate = 0.02;
    e.certify.n0 = 5;
    e.certify.n = 25;
    e.certify.every = 2;
    e.certify.alpha = kAlpha;
    e.certify.seed = 1;  // the same noise in every run
  }

  // Makes one client bad in each of the first groups.
  void poison(ByzantineKind kind, double scale, int64_t groups) {
    experiment_.train.byzantine = {.kind = kind, .scale = scale};
    std::vector<int64_t>& bad = experiment_.train.byzantine.clients;
    for (int64_t g = 1; g <= groups; ++g) {
      bad.push_back(clients_of_group({kGroups, g}, 28, experiment_.seed).front());
    }
    std::ranges::sort(bad);
  }

  Rows train_and_certify(const std::string& name) {
    train(name);
    return read_certificates(jobs::certify({.path = path(name).string()}, {}, context_));
  }
};

TEST_F(SlowPoisonedGroupsTest, NoAnswerCertifiedCleanIsLostToPoisonNorTheOtherWayRound) {
  const Rows clean = train_and_certify("clean");
  struct World {
    std::string name;
    ByzantineKind kind;
    double scale;
    int64_t malicious;
  };
  for (const auto& [name, kind, scale, m] :
       {World{"flipped-labels", ByzantineKind::kLabelFlip, 1, 2},
        {"flipped-updates", ByzantineKind::kSignFlip, 10, 2},
        {"noise", ByzantineKind::kNoise, 1, 1}}) {
    SCOPED_TRACE(name);
    poison(kind, scale, m);
    const Rows poisoned = train_and_certify(name);
    for (const Comparison& found : {compare(clean, poisoned, m), compare(poisoned, clean, m)}) {
      EXPECT_GT(found.certified, 0);
      EXPECT_EQ(found.contradicted, 0);
      EXPECT_EQ(found.lost, 0);
    }
    EXPECT_GT(compare(clean, poisoned, 0).lost, 0);  // the poison had an effect
  }
  // Bad clients in more groups than certified against do contradict certificates.
  poison(ByzantineKind::kSignFlip, 10, kGroups - 1);
  const Comparison beyond = compare(clean, train_and_certify("beyond"), 1);
  EXPECT_GT(beyond.contradicted, 0);
  EXPECT_GT(beyond.lost, 10);
}

}  // namespace
}  // namespace fedsmooth
