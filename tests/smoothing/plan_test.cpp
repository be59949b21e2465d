#include "fedsmooth/smoothing/plan.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "tests/smoothing/classifiers.h"

namespace fedsmooth {
namespace {

constexpr double kSigma = 0.25;

int64_t planned(int64_t top, double loss, int64_t most = 100'000) {
  const CertifyOptions o = {.n = most, .plan = loss};
  return VotePlanner(o, kSigma, kFloatNoise).votes_for({0, 1000, top, 1000 - top});
}

double radius_of(int64_t top, int64_t n) {
  return certificate_from_counts({0, n, top, n - top}, kSigma, 0.001, RadiusKind::kOneSided,
                                 kFloatNoise)
      .radius;
}

// The count of n votes that nine of ten exceed.
int64_t unlucky_count(double share, int64_t n) {
  const auto votes = static_cast<double>(n);
  return static_cast<int64_t>(votes * share - 1.2816 * std::sqrt(votes * share * (1 - share)));
}

TEST(PlanTest, TheFewestVotesThatLoseLittleAreTaken) {
  for (const int64_t top : {600, 700, 840, 950, 990, 999, 1000}) {
    const int64_t n = planned(top, 0.02);
    const double share = static_cast<double>(top) / 1000, best = radius_of(top * 100, 100'000);
    if (n < 100'000) {
      EXPECT_GE(radius_of(unlucky_count(share, n), n), best - 0.02) << top;
    }
    if (n > 500 && n < 100'000) {
      EXPECT_LT(radius_of(unlucky_count(share, n / 2), n / 2), best - 0.02) << top;
    }
    EXPECT_TRUE(n == 100'000 || (n % 500 == 0 && std::has_single_bit(uint64_t(n / 500)))) << n;
  }
  EXPECT_EQ(planned(1000, 0.001), 100'000);  // every vote makes the radius larger
  EXPECT_GT(planned(840, 0.005), planned(840, 0.05));
}

// A runner-up with few votes leaves a larger radius, which loses more by few votes.
TEST(PlanTest, TheRunnerUpCountsForItsRadiusAlone) {
  const auto planned = [](int64_t runner_up, RadiusKind radius) {
    const CertifyOptions o = {.radius = radius, .plan = 0.02};
    return VotePlanner(o, kSigma, kFloatNoise).votes_for({0, 1000, 840, runner_up});
  };
  EXPECT_GT(planned(20, RadiusKind::kMulticlass), planned(160, RadiusKind::kMulticlass));
  EXPECT_EQ(planned(20, RadiusKind::kOneSided), planned(160, RadiusKind::kOneSided));
}

TEST(PlanTest, AnImageWithoutAMajorityGetsFewVotes) {
  EXPECT_EQ(planned(400, 0.001), 500);
  EXPECT_EQ(planned(0, 0.001), 500);
  EXPECT_EQ(planned(400, 0.001, 300), 300);  // not more than allowed
}

// The most votes would answer at a radius below the loss; fewer would abstain.
TEST(PlanTest, AnImageThatCanBeAnsweredIsNotLeftToTooFewVotes) {
  const int64_t n = planned(520, 0.02);
  EXPECT_NE(certificate_from_counts({0, n, 52 * n / 100, 0}, kSigma, 0.001, RadiusKind::kOneSided,
                                    kFloatNoise)
                .predict,
            kAbstain);
}

// The image at `distance` from the boundary of a half-space.
const Array kOrigin = Array::full({1, 2, 2}, 0.5f);
Array image_at(double distance) {
  return each(kOrigin, [=](float v) { return v + static_cast<float>(distance / 2); });
}

// Counts the pilot's votes as one asks; all others as they are.
class PlantedPilot : public SerialSampler {
 public:
  PlantedPilot(const BaseClassifier& f, int64_t top) : SerialSampler(f, kFloatNoise), top_(top) {}
  Votes count(const VoteRequest& r) override {
    if (r.stream.key.value != make_key(1, Purpose::kSelection).value) {
      return SerialSampler::count(r);
    }
    EXPECT_EQ(r.n, kPilotVotes);
    return {r.n - top_, top_};
  }

 private:
  int64_t top_;
};

// Another pilot changes how many votes are drawn, not what they are nor the bound on them.
TEST(PlanTest, APilotsVotesEnterNoBound) {
  const CertifyOptions o = {.n = 20'000, .plan = 0.02};
  const BaseClassifier f = fixed_batch(half_space(4, kOrigin), 2);
  SerialSampler honest(f, kFloatNoise);
  std::set<int64_t> numbers;
  for (const int64_t top : {501, 600, 840, 1000}) {
    PlantedPilot sampler(f, top);
    const Certificate c = certify(sampler, image_at(0.1), kSigma, o, 1, 7);
    numbers.insert(c.counts.n);
    const Votes fresh =
        honest.count({image_at(0.1), kSigma, c.counts.n, {make_key(1, Purpose::kEstimation), 7}});
    EXPECT_EQ(c.counts.top, fresh[1]);
    const Certificate expected = certificate_from_counts({1, c.counts.n, fresh[1], fresh[0]},
                                                         kSigma, o.alpha, o.radius, kFloatNoise);
    EXPECT_EQ(c.radius, expected.radius);
    EXPECT_EQ(c.p_lower, expected.p_lower);
  }
  EXPECT_GE(numbers.size(), 3U);
}

// 100,000 simulated images at the true distance 0.1: pilot and votes from their law.
TEST(PlanTest, RadiiOfHalfSpacesAreExceededNoMoreOftenThanAlpha) {
  constexpr int kImages = 100'000;
  constexpr double kAlpha = 0.01;
  const double p = std::erfc(-0.1 / kSigma / std::sqrt(2)) / 2;
  const CertifyOptions o = {.n = 20'000, .alpha = kAlpha, .plan = 0.0132};
  VotePlanner planner(o, kSigma, kFloatNoise);
  std::map<std::pair<int64_t, int64_t>, double> radii;  // by n and count: there are few of them
  std::mt19937_64 generator(1);
  int exceeded = 0;
  std::set<int64_t> numbers;
  for (int i = 0; i < kImages; ++i) {
    const int64_t pilot = std::binomial_distribution<int64_t>(1000, p)(generator);
    const int64_t n = planner.votes_for({0, 1000, pilot, 1000 - pilot});
    const int64_t top = std::binomial_distribution<int64_t>(n, p)(generator);
    const auto [radius, is_new] = radii.try_emplace({n, top});
    if (is_new) {
      radius->second =
          certificate_from_counts({0, n, top, n - top}, kSigma, kAlpha, o.radius, kFloatNoise)
              .radius;
    }
    exceeded += radius->second > 0.1;
    numbers.insert(n);
  }
  EXPECT_LE(exceeded, kImages * kAlpha + 4 * std::sqrt(kImages * kAlpha));
  EXPECT_GE(exceeded, kImages * kAlpha / 2);  // or the test would not see a doubled alpha
  EXPECT_GE(numbers.size(), 2U);
}

// Votes of simulated images: their first ones under the plan, and all of them.
struct Outcome {
  double planned, whole;
};

class Simulation {
 public:
  explicit Simulation(const CertifyOptions& o) : o_(o), planner_(o, kSigma, kFloatNoise) {}

  Outcome image_at(double distance) {
    const double p = std::erfc(-distance / kSigma / std::sqrt(2)) / 2;
    const int64_t pilot = draw(1000, p), n = planner_.votes_for({0, 1000, pilot, 1000 - pilot});
    drawn_ += n;
    const int64_t top = draw(n, p);
    return {radius(top, n), n == o_.n ? radius(top, n) : radius(top + draw(o_.n - n, p), o_.n)};
  }
  int64_t drawn() const { return drawn_; }

 private:
  int64_t draw(int64_t n, double p) {
    return std::binomial_distribution<int64_t>(n, p)(generator_);
  }
  double radius(int64_t top, int64_t n) {
    const auto [found, is_new] = radii_.try_emplace({n, top});
    if (is_new) found->second = radius_of(top, n);
    return found->second;
  }

  CertifyOptions o_;
  VotePlanner planner_;
  std::mt19937_64 generator_{1};
  int64_t drawn_ = 0;
  std::map<std::pair<int64_t, int64_t>, double> radii_;  // bounds take time; counts come again
};

// LOSS is per image. A curve that falls by 40 points from radius r to r + 1, as steep as those of
// sigma 0.25 are, then loses less than half a point of certified accuracy anywhere.
TEST(PlanTest, ACurveLosesLessThanHalfAPoint) {
  constexpr int kImages = 3000;
  const CertifyOptions o = {.n = 100'000, .plan = 0.02};
  for (const double radius : {0.1, 0.25, 0.5, 0.75}) {
    Simulation simulation(o);
    int lost = 0, far = 0;
    for (int i = 0; i < kImages; ++i) {
      const double distance = radius + 0.08 * (static_cast<double>(i) / kImages) - 0.01;
      const auto [planned, whole] = simulation.image_at(distance);
      lost += (whole >= radius) - (planned >= radius);
      far += planned < whole - o.plan;
    }
    // 0.08 of distances hold 3.2 points.
    EXPECT_LE(3.2 * lost / kImages, 0.5) << radius;
    EXPECT_LE(far, kImages / 8) << radius;
    EXPECT_LT(simulation.drawn(), 0.85 * o.n * kImages) << radius;  // far out it takes many
  }
}

}  // namespace
}  // namespace fedsmooth
