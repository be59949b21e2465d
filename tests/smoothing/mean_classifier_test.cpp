#include "fedsmooth/smoothing/mean_classifier.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "fedsmooth/smoothing/certify.h"
#include "tests/refusal.h"
#include "tests/smoothing/classifiers.h"

namespace fedsmooth {
namespace {

const Array kImage = Array::full({1, 2, 2}, 0.5f);

// Answers 1 where w . z > offset, with the scores as logits.
Classifier linear(const std::vector<float>& w, float offset) {
  return by_score([=](Pixels pixels) {
    float sum = -offset;
    for (size_t i = 0; i < w.size(); ++i) sum += w[i] * pixels[i];
    return sum;
  });
}

// Random linear scores of three classes.
Classifier random_scores(uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> w(12);
  for (float& v : w) v = normal(random);
  return image_by_image(3, [=](Pixels pixels, float* logits) {
    for (int64_t i = 0; i < 12; ++i) logits[i / 4] += w[i] * (pixels[i % 4] - 0.5f);
  });
}

BaseClassifier mean_of(const std::vector<Classifier>& members, int64_t classes) {
  std::vector<BaseClassifier> bases;
  for (const Classifier& f : members) bases.push_back(fixed_batch(f, classes));
  return mean_classifier(bases);
}

Votes count(const BaseClassifier& f, int64_t n) {
  return SerialSampler(f, kFloatNoise)
      .count({kImage, 0.5, n, {make_key(1, Purpose::kEstimation), 3}});
}

TEST(MeanClassifierTest, OneMemberVotesAsItDoesAlone) {
  const BaseClassifier alone = fixed_batch(random_scores(1), 3);
  const BaseClassifier mean = mean_classifier({alone});
  EXPECT_EQ(count(mean, 1000), count(alone, 1000));
  EXPECT_EQ(check_is_function(mean, {1, 2, 2}).fingerprint,
            check_is_function(alone, {1, 2, 2}).fingerprint);
}

TEST(MeanClassifierTest, LogitsAreTheMeanInTheOrderOfTheMembers) {
  const std::vector<Classifier> members = {random_scores(1), random_scores(2), random_scores(3)};
  const Array images = Array::full({64, 1, 2, 2}, 0.625f);
  const Array found = mean_of(members, 3).make()(images);
  const Array a = members[0](images), b = members[1](images), c = members[2](images);
  for (int64_t i = 0; i < found.count(); ++i) {
    EXPECT_EQ(found.floats()[i], (a.floats()[i] + b.floats()[i] + c.floats()[i]) / 3.0f);
  }
}

// The mean of two half-spaces' scores is the score of a third half-space, whose distance from an
// image is the largest radius that can be certified there.
TEST(MeanClassifierTest, RadiiApproachTheDistanceOfTheMeanHalfSpace) {
  const BaseClassifier mean =
      mean_of({linear({3, 1, 0, 0}, 1.2f), linear({0, 1, 2, -4}, -1.0f)}, 2);
  // w = (3, 2, 2, -4) / 2 and w . x - offset = (3 * 0.5 - 0.2) / 2.
  const double distance = 1.3 / std::sqrt(9.0 + 4 + 4 + 16);
  SerialSampler sampler(mean, kFloatNoise);
  const Certificate c = certify(sampler, kImage, 0.25, {.n = 100'000}, 1, 0);
  EXPECT_EQ(c.predict, 1);
  EXPECT_LE(c.radius, distance);
  // 3.09 standard deviations of the bound, and 4 by chance, at p = Phi(0.905): 0.25 * 7 *
  // sqrt(p (1 - p) / n) / phi(0.905).
  EXPECT_GT(c.radius, distance - 0.0081);
}

TEST(MeanClassifierTest, RadiiBeyondTheDistanceAreAsRareAsAlphaSays) {
  const BaseClassifier mean = mean_of({linear({3, 1}, 1.7f), linear({1, 3}, 1.7f)}, 2);
  const double distance = (4 - 3.4) / 2 / std::sqrt(8.0);  // w = (2, 2), score 4 / 2 - 1.7
  SerialSampler sampler(mean, kFloatNoise);
  constexpr int64_t kTimes = 1000;
  int64_t wrong = 0;
  for (uint32_t i = 0; i < kTimes; ++i) {
    const Certificate c = certify(sampler, kImage, 0.25, {.n0 = 20, .n = 200, .alpha = 0.1}, 5, i);
    wrong += c.predict == 0 || (c.predict == 1 && c.radius > distance);
  }
  EXPECT_GT(wrong, 0);  // the test could fail
  // 4 standard errors above alpha.
  EXPECT_LT(static_cast<double>(wrong) / kTimes, 0.1 + 4 * std::sqrt(0.1 * 0.9 / kTimes));
}

TEST(MeanClassifierTest, ALogitThatIsNotFiniteInAnyMemberVotesForNobody) {
  const Classifier fine = constant_class(1, 3);
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    const Classifier broken = image_by_image(3, [bad](Pixels pixels, float* logits) {
      if (pixels[0] > 0.5f) logits[2] = bad;
    });
    const Votes expected = count(
        fixed_batch(image_by_image(2, [](Pixels p, float* z) { z[p[0] > 0.5f] = 1; }), 2), 1000);
    for (const auto& members : {std::vector<Classifier>{fine, broken}, {broken, fine, fine}}) {
      EXPECT_EQ(count(mean_of(members, 3), 1000), (Votes{0, expected[0], 0})) << bad;
    }
    // Opposite infinities do not cancel.
    const Classifier opposite = image_by_image(3, [bad](Pixels pixels, float* logits) {
      if (pixels[0] > 0.5f) logits[2] = -bad;
    });
    EXPECT_EQ(count(mean_of({broken, opposite}, 3), 1000), (Votes{expected[0], 0, 0})) << bad;
  }
}

TEST(MeanClassifierTest, AMemberThatIsNoFunctionIsFound) {
  const Classifier by_neighbour = [](const Array& images) {
    Array logits({images.size(0), 3});
    logits.floats()[0] = images.floats()[images.count() - 1];
    return logits;
  };
  EXPECT_NE(refusal([&] {
              check_is_function(mean_of({random_scores(1), by_neighbour}, 3), {1, 2, 2});
            }).find("depend on the other images"),
            std::string::npos);
}

TEST(MeanClassifierTest, RefusesMembersThatDoNotFit) {
  const BaseClassifier three = fixed_batch(random_scores(1), 3);
  EXPECT_NE(refusal([&] {
              mean_classifier({three, fixed_batch(constant_class(0, 2), 2)});
            }).find("one has 3 classes, another 2"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              mean_classifier({three, fixed_batch(random_scores(2), 3, 32)});
            }).find("evaluates 64 images at a time"),
            std::string::npos);
  EXPECT_NE(refusal([] { mean_classifier({}); }).find("empty"), std::string::npos);
}

TEST(MeanClassifierTest, DescribesItsMembersOnce) {
  EXPECT_EQ(describe_mean({"cpu/b", "cpu/a", "cpu/b"}), "cpu/a+cpu/b/mean-of-3");
}

}  // namespace
}  // namespace fedsmooth
