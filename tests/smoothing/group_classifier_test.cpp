#include "fedsmooth/smoothing/group_classifier.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "fedsmooth/base/error.h"
#include "fedsmooth/smoothing/certify.h"
#include "fedsmooth/smoothing/statistics.h"
#include "tests/refusal.h"
#include "tests/smoothing/classifiers.h"

namespace fedsmooth {
namespace {

const Array kImage = Array::full({1, 2, 2}, 0.5f);

// Random linear scores of three classes.
Classifier random_scores(uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> w(12);
  for (float& v : w) v = normal(random);
  return image_by_image(3, [=](Pixels pixels, float* logits) {
    for (int64_t i = 0; i < 12; ++i) logits[i / 4] += w[i] * (pixels[i % 4] - 0.4f);
  });
}

BaseClassifier majority_of(const std::vector<Classifier>& members, int64_t classes) {
  std::vector<BaseClassifier> bases;
  for (const Classifier& f : members) bases.push_back(fixed_batch(f, classes));
  return group_classifier(bases);
}

BaseClassifier five_groups() {
  std::vector<Classifier> members;
  for (uint32_t g = 0; g < 5; ++g) members.push_back(random_scores(g));
  return majority_of(members, 3);
}

VoteRequest request(int64_t n, int64_t first = 0) {
  return {kImage, 0.5, n, {make_key(1, Purpose::kEstimation), 3}, first};
}

// Half-spaces w.z > t_g with w the unit vector along the diagonal, at rising thresholds t_g: class
// 1 has gap 2 v_1 - G - 1, which is at least 2 m exactly if w.z is above the (5 + m)-th of 9.
constexpr int64_t kGroups = 9;
double threshold(int64_t g) { return 0.30 + 0.12 * static_cast<double>(g); }  // g = 0 ... 8
BaseClassifier half_spaces() {
  std::vector<Classifier> members;
  for (int64_t g = 0; g < kGroups; ++g) {
    members.push_back(by_score([t = static_cast<float>(threshold(g))](Pixels pixels) {
      float sum = 0;
      for (const float pixel : pixels) sum += 0.5f * pixel;
      return sum - t;
    }));
  }
  return majority_of(members, 2);
}
// w.x = 1 at kImage. Where m groups are replaced by ones that never answer 1, this is the distance
// to the nearest point that the majority answers by 0: no larger radius holds.
double true_radius(int64_t m) { return 1.0 - threshold(4 + m); }

TEST(GroupClassifierTest, RadiiAgainstMAreThoseOfHalfSpacesInClosedForm) {
  const BaseClassifier f = half_spaces();
  SerialSampler sampler(f, kFloatNoise);
  for (const int64_t m : {0, 1}) {
    const CertifyOptions o{.n0 = 100, .n = 100'000, .alpha = 0.001, .malicious = m};
    const Certificate c = certify(sampler, kImage, 0.25, o, 1, 0);
    EXPECT_EQ(c.predict, 1);
    EXPECT_LE(c.radius, true_radius(m)) << m;
    EXPECT_GT(c.radius, true_radius(m) - 0.01) << m;
  }
  EXPECT_LT(true_radius(2), 0);
  const CertifyOptions o{.n = 10'000, .malicious = 2};
  EXPECT_EQ(certify(sampler, kImage, 0.25, o, 1, 0).predict, kAbstain);
}

TEST(GroupClassifierTest, RadiiBeyondTheTrueOneAreAsRareAsAlphaSays) {
  const BaseClassifier f = half_spaces();
  SerialSampler sampler(f, kFloatNoise);
  constexpr int64_t kTimes = 1000;
  // All of m = 0 and 1 at once.
  const CertifyOptions o{.n0 = 20, .n = 200, .alpha = 0.1, .malicious = 1};
  int64_t wrong = 0;
  for (uint32_t i = 0; i < kTimes; ++i) {
    const Certificate c = certify(sampler, kImage, 0.25, o, 5, i);
    const Gaps& gaps = c.counts.gaps;
    bool any = false;
    for (const int64_t m : {0, 1}) {
      const double p = binomial_lower_bound(copies_safe_from(gaps, m), o.n, o.level());
      any = any || (p > 0.5 && kFloatNoise.radius(0.25, p) > true_radius(m));
    }
    wrong += any;
  }
  EXPECT_GT(wrong, 0);
  EXPECT_LT(static_cast<double>(wrong) / kTimes, 0.1 + 4 * std::sqrt(0.1 * 0.9 / kTimes));
}

// Gaps of class c by hand: every copy drawn alone, every member asked alone.
Gaps brute_force(const std::vector<Classifier>& members, int64_t c, int64_t n) {
  Gaps gaps(members.size() + 2, 0);
  const NoiseSource draw = kFloatNoise.draws_at(0.5);
  Array copy({1, 1, 2, 2});
  for (int64_t i = 0; i < n; ++i) {
    draw(kImage, request(1).stream, i, 1, copy);
    std::vector<int64_t> v(3, 0);
    for (const Classifier& f : members) ++v[vote_of(f(copy).floats(), 3)];
    int64_t gap = 1'000'000;
    for (int64_t k = 0; k < 3; ++k) {
      if (k != c) gap = std::min(gap, v[c] - v[k] - (k < c ? 1 : 0));
    }
    ++(gap < 0 ? gaps.back() : gaps[gap]);
  }
  return gaps;
}

TEST(GroupClassifierTest, GapsAreThoseCountedByHand) {
  std::vector<Classifier> members;
  for (uint32_t g = 0; g < 5; ++g) members.push_back(random_scores(g));
  const BaseClassifier f = five_groups();
  SerialSampler sampler(f, kFloatNoise);
  for (const int64_t c : {0, 1, 2}) {
    const VotesAndGaps tally = sampler.count_gaps({request(1000)}, {c})[0];
    EXPECT_EQ(tally.gaps, brute_force(members, c, 1000)) << c;
    EXPECT_EQ(tally.votes, sampler.count(request(1000)));
    EXPECT_EQ(copies_safe_from(tally.gaps, 0), tally.votes[c]);
  }
}

TEST(GroupClassifierTest, EveryGroupGetsTheSameNoise) {
  const Classifier f = random_scores(1);
  const BaseClassifier three = majority_of({f, f, f}, 3);
  const Votes alone = SerialSampler(fixed_batch(f, 3), kFloatNoise).count(request(1000));
  SerialSampler sampler(three, kFloatNoise);
  const VotesAndGaps tally = sampler.count_gaps({request(1000)}, {0})[0];
  EXPECT_EQ(tally.votes, alone);
  EXPECT_EQ(tally.gaps, (Gaps{0, 0, 0, alone[0], 1000 - alone[0]}));  // they never disagree
}

TEST(GroupClassifierTest, AProbeSeesALogitThatChangesNoVote) {
  const auto shift = std::make_shared<float>(0.0f);
  const Classifier moving = image_by_image(2, [shift](Pixels, float* z) { z[1] = 1 + *shift; });
  const BaseClassifier f = majority_of({constant_class(0, 2), moving}, 2);
  SerialSampler sampler(f, kFloatNoise);
  sampler.check(kImage.sizes());
  sampler.probe();
  *shift = 1e-3f;
  EXPECT_THROW(sampler.probe(), ClassifierChanged);
}

TEST(GroupClassifierTest, AMemberThatIsNoFunctionIsFound) {
  const Classifier by_neighbour = [](const Array& images) {
    Array logits({images.size(0), 3});
    logits.floats()[0] = images.floats()[images.count() - 1];
    return logits;
  };
  EXPECT_NE(refusal([&] {
              check_is_function(majority_of({random_scores(1), by_neighbour}, 3), {1, 2, 2});
            }).find("depend on the other images"),
            std::string::npos);
}

TEST(GroupClassifierTest, GivenRadiiAreDecidedAgainstMaliciousClients) {
  const BaseClassifier f = half_spaces();
  SerialSampler sampler(f, kFloatNoise);
  CertifyOptions o{.n = 20'000, .radii = {0.05, 0.15}, .malicious = 1};
  const Certificate against_one = certify(sampler, kImage, 0.25, o, 1, 0);
  EXPECT_EQ(against_one.radius, 0.05);  // the true one is 0.10
  EXPECT_TRUE(against_one.counts.gaps.empty());
  o.malicious = 0;
  EXPECT_EQ(certify(sampler, kImage, 0.25, o, 1, 0).radius, 0.15);  // 0.22
  o.malicious = 2;
  EXPECT_EQ(certify(sampler, kImage, 0.25, o, 1, 0).predict, kAbstain);
}

TEST(GroupClassifierTest, PlannedVotesAreThoseForTheRadiusAgainstM) {
  const BaseClassifier f = half_spaces();
  SerialSampler sampler(f, kFloatNoise);
  CertifyOptions o{.n = 100'000, .plan = 0.02, .malicious = 1};
  const Certificate c = certify(sampler, kImage, 0.25, o, 1, 0);
  EXPECT_LT(c.counts.n, o.n);
  EXPECT_EQ(c.counts.top, copies_safe_from(c.counts.gaps, 1));
  EXPECT_LE(c.radius, true_radius(1));
  EXPECT_GT(c.radius, true_radius(1) - 0.04);
}

TEST(GroupClassifierTest, CertificatesOfSeveralMRefuseWhatTheyCannotProve) {
  const BaseClassifier groups = five_groups();
  SerialSampler sampler(groups, kFloatNoise);
  const auto refuse = [](Sampler& s, const CertifyOptions& o) {
    return refusal([&] { certify(s, kImage, 0.5, o, 1, 0); });
  };
  EXPECT_NE(refuse(sampler, {.malicious = 3}).find("5 groups withstand at most 2"),
            std::string::npos);
  EXPECT_NE(refuse(sampler, {.radius = RadiusKind::kMulticlass}).find("one-sided"),
            std::string::npos);
  const BaseClassifier one = fixed_batch(random_scores(1), 3);
  SerialSampler alone(one, kFloatNoise);
  EXPECT_NE(refuse(alone, {.malicious = 1}).find("one network"), std::string::npos);
  EXPECT_NE(refusal([&] { alone.count_gaps({request(10)}, {0}); }).find("one network"),
            std::string::npos);
}

TEST(GroupClassifierTest, RefusesMembersThatDoNotFit) {
  const BaseClassifier three = fixed_batch(random_scores(1), 3);
  const auto refuse = [](const std::vector<BaseClassifier>& members) {
    return refusal([&] { group_classifier(members); });
  };
  EXPECT_NE(refuse({three, fixed_batch(constant_class(0, 2), 2)}).find("3 classes, another 2"),
            std::string::npos);
  EXPECT_NE(refuse({three, fixed_batch(random_scores(2), 3, 32)}).find("64 images at a time"),
            std::string::npos);
  EXPECT_NE(refuse({three}).find("from 2"), std::string::npos);
  EXPECT_NE(refuse({five_groups(), five_groups()}).find("several groups itself"),
            std::string::npos);
}

TEST(GroupClassifierTest, DescribesItsMembersOnce) {
  EXPECT_EQ(describe_groups({"cpu/b", "cpu/a", "cpu/b"}), "cpu/a+cpu/b/majority-of-3");
}

}  // namespace
}  // namespace fedsmooth
