#include "fedsmooth/smoothing/sequential.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "fedsmooth/base/error.h"
#include "fedsmooth/engine/threaded_sampler.h"
#include "fedsmooth/smoothing/e_process.h"
#include "fedsmooth/smoothing/statistics.h"
#include "tests/smoothing/classifiers.h"

namespace fedsmooth {
namespace {

constexpr double kSigma = 0.25;

double probability_at(double distance) { return std::erfc(-distance / kSigma / std::sqrt(2)) / 2; }

// A simulated image: votes are drawn from their law, at the looks of certify_all().
double simulate(RadiiTest& test, double p, int64_t cap, std::mt19937_64& generator) {
  std::vector<Latch> latches;
  int64_t top = 0;
  for (int64_t n = 0, next; n < cap; n = next) {
    next = next_look(n, cap);
    top += std::binomial_distribution<int64_t>(next - n, p)(generator);
    if (test.look(top, next, latches)) break;
  }
  return latches.empty() ? -1 : test.ladder()[latches.size() - 1];
}

// Half-spaces: the largest radius that can be certified is the distance. It lies just below a
// radius of the ladder, which is the worst that can happen.
TEST(SequentialTest, RadiiOfHalfSpacesAreExceededNoMoreOftenThanAlpha) {
  constexpr int kImages = 100'000;
  constexpr double kAlpha = 0.01;
  RadiiTest test(ladder_of({0.1, 0.25, 0.3, 0.5}), kSigma, kAlpha, 0.01, kFloatNoise);
  std::mt19937_64 generator(1);
  int exceeded = 0, reached = 0;
  for (int i = 0; i < kImages; ++i) {
    const double distance = test.ladder()[i % 5] - 1e-7;
    const double radius = simulate(test, probability_at(distance), 3000, generator);
    exceeded += radius > distance;  // at distance 0: any answer
    reached += i % 5 > 0 && radius == test.ladder()[i % 5 - 1];
  }
  EXPECT_LE(exceeded, kImages * kAlpha + 4 * std::sqrt(kImages * kAlpha));
  EXPECT_GE(exceeded, kImages * kAlpha / 8);  // or the test would not see eight times alpha
  EXPECT_GE(reached, kImages * 0.8 * 0.9);    // the radius below is certified nearly always
}

// Many radii above the truth: alpha is spent once, on the smallest.
TEST(SequentialTest, ALadderAboveTheTruthIsClimbedNoMoreOftenThanAlpha) {
  constexpr int kImages = 20'000;
  constexpr double kAlpha = 0.05;
  std::vector<double> radii;
  for (int i = 0; i < 60; ++i) radii.push_back(0.2 + 0.005 * i);
  RadiiTest test(ladder_of(radii), kSigma, kAlpha, 0.01, kFloatNoise);
  std::mt19937_64 generator(2);
  int climbed = 0;
  for (int i = 0; i < kImages; ++i) {
    climbed += simulate(test, probability_at(0.1999), 1000, generator) > 0.1999;
  }
  EXPECT_LE(climbed, kImages * kAlpha + 4 * std::sqrt(kImages * kAlpha));
  EXPECT_GE(climbed, kImages * kAlpha / 10);
}

TEST(SequentialTest, FewRadiiThatCouldBeCertifiedAreGivenUp) {
  constexpr int kImages = 20'000;
  constexpr double kBeta = 0.05;
  RadiiTest test(ladder_of({0.25}), kSigma, 0.001, kBeta, kFloatNoise);
  std::mt19937_64 generator(3);
  int lost = 0;
  for (int i = 0; i < kImages; ++i) {
    lost += simulate(test, probability_at(0.2501 + 1e-3 * (i % 200)), 1 << 20, generator) < 0.25;
  }
  EXPECT_LE(lost, kImages * kBeta + 4 * std::sqrt(kImages * kBeta));
}

TEST(SequentialTest, LooksDecideByTheEvidenceInAscendingOrder) {
  const std::vector<double> ladder = ladder_of({0.5, 0.25, 0.25});
  EXPECT_EQ(ladder, (std::vector<double>{0, 0.25, 0.5}));
  RadiiTest test(ladder, kSigma, 0.001, 0.01, kFloatNoise);
  const auto evidence = [&](int64_t top, int64_t n, double radius) {
    const double p = kFloatNoise.needed_probability(kSigma, radius);
    return log_e_value(top, n, p, 1 - p);
  };
  const auto counter_evidence = [&](int64_t top, int64_t n, double radius) {
    const double p = kFloatNoise.needed_probability(kSigma, radius);
    return log_e_value(n - top, n, 1 - p, p);
  };
  for (const int64_t n : {100, 120, 1000}) {
    for (int64_t top = 0; top <= n; ++top) {
      std::vector<Latch> latches;
      const bool decided = test.look(top, n, latches);
      size_t expected = 0;
      while (expected < 3 && evidence(top, n, ladder[expected]) >= std::log(1000)) ++expected;
      ASSERT_EQ(latches.size(), expected) << top << " of " << n;
      EXPECT_EQ(decided,
                expected == 3 || counter_evidence(top, n, ladder[expected]) >= std::log(100));
    }
  }
  // What is latched stays so, whatever comes.
  std::vector<Latch> latches;
  EXPECT_FALSE(test.look(100, 100, latches) && latches.size() < 3);
  const size_t before = latches.size();
  EXPECT_GE(before, 2U);
  test.look(100, 200, latches);
  EXPECT_GE(latches.size(), before);
}

TEST(SequentialTest, NeededProbabilitiesAreRoundedUp) {
  EXPECT_EQ(kFloatNoise.needed_probability(kSigma, 0), 0.5);
  for (const double sigma : {0.12, 0.25, 0.5, 1.0}) {
    for (const double z : {0.001, 0.5, 1.0, 2.0, 3.8}) {
      const double p = kFloatNoise.needed_probability(sigma, z * sigma);
      EXPECT_GE(p, probability_at(z * kSigma));
      EXPECT_NEAR(p, probability_at(z * kSigma), 1e-7);
      // Whoever may claim p may claim the radius, by the noise that was drawn.
      const double drawn = std::min(sigma, static_cast<double>(static_cast<float>(sigma)));
      EXPECT_GE(drawn * normal_quantile_above(p), z * sigma);
    }
  }
}

TEST(SequentialTest, LooksComeAfterAFifthMoreVotes) {
  EXPECT_EQ(next_look(0, 1000), 100);
  EXPECT_EQ(next_look(0, 50), 50);
  EXPECT_EQ(next_look(100, 1000), 120);
  EXPECT_EQ(next_look(900, 1000), 1000);
  for (int64_t n = 100; n < 1 << 20; n = next_look(n, 1 << 20)) {
    EXPECT_GT(next_look(n, 1 << 20), n);
    EXPECT_LE(next_look(n, 1 << 20), n + (n + 4) / 5);
  }
}

// Twelve images at several distances from a boundary.
const Array kOrigin = Array::full({1, 2, 2}, 0.5f);

std::vector<LabelledImage> images() {
  std::vector<LabelledImage> made;
  for (uint32_t i = 0; i < 12; ++i) {
    const float shift = 0.02f * static_cast<float>(i);
    made.push_back({each(kOrigin, [=](float v) { return v + shift; }), i, i % 3 != 0});
  }
  return made;
}

const CertifyOptions kOptions = {
    .n0 = 20, .n = 3000, .alpha = 0.01, .radii = {0.1, 0.2, 0.4}, .beta = 0.01};

void expect_same(const Certificate& a, const Certificate& b) {
  EXPECT_EQ(a.predict, b.predict);
  EXPECT_EQ(a.radius, b.radius);
  EXPECT_EQ(a.p_lower, b.p_lower);
  EXPECT_EQ(a.counts.n, b.counts.n);
  EXPECT_EQ(a.counts.top, b.counts.top);
  EXPECT_EQ(a.counts.runner_up, b.counts.runner_up);
  EXPECT_EQ(a.counts.votes, b.counts.votes);
  EXPECT_EQ(a.counts.selection, b.counts.selection);
  ASSERT_EQ(a.latches.size(), b.latches.size());
  for (size_t i = 0; i < a.latches.size(); ++i) {
    EXPECT_EQ(a.latches[i].top, b.latches[i].top);
    EXPECT_EQ(a.latches[i].n, b.latches[i].n);
  }
}

TEST(SequentialTest, ImagesLatchTheSameAloneTogetherAndOnThreads) {
  const BaseClassifier f = fixed_batch(half_space(4, kOrigin), 2);
  SerialSampler serial(f, kFloatNoise);
  ThreadedSampler threaded(f, kFloatNoise, 3);
  const std::vector<LabelledImage> all = images();
  const auto together = certify_all(serial, all, kSigma, kOptions, 1);
  const auto on_threads = certify_all(threaded, all, kSigma, kOptions, 1);
  std::set<double> radii;
  for (size_t i = 0; i < all.size(); ++i) {
    expect_same(together[i], on_threads[i]);
    expect_same(together[i], certify(serial, all[i].x, kSigma, kOptions, 1, all[i].index));
    radii.insert(together[i].predict == kAbstain ? -1 : together[i].radius);
    EXPECT_TRUE(latches_hold(together[i].counts, together[i].latches, ladder_of(kOptions.radii),
                             kSigma, kOptions.alpha, kFloatNoise));
  }
  EXPECT_GE(radii.size(), 4U);  // or there is little to compare
}

// Every latch is at the counts of the first votes of the stream, and nothing else was counted.
TEST(SequentialTest, LatchesAreAtTheStreamsOwnVotes) {
  SerialSampler sampler(fixed_batch(half_space(4, kOrigin), 2), kFloatNoise);
  for (const LabelledImage& image : images()) {
    const Certificate c = certify(sampler, image.x, kSigma, kOptions, 1, image.index);
    const auto votes = [&](int64_t n) {
      return sampler.count({image.x, kSigma, n, {make_key(1, Purpose::kEstimation), image.index}});
    };
    EXPECT_EQ(c.counts.votes, tally_of(votes(c.counts.n)));
    EXPECT_EQ(c.counts.top, votes(c.counts.n)[c.counts.selected]);
    for (const Latch& at : c.latches) EXPECT_EQ(at.top, votes(at.n)[c.counts.selected]);
  }
}

TEST(SequentialTest, OnlyCorrectLeavesOthersWithoutVotes) {
  SerialSampler sampler(fixed_batch(half_space(4, kOrigin), 2), kFloatNoise);
  CertifyOptions o = kOptions;
  o.only_correct = true;
  const auto all = certify_all(sampler, images(), kSigma, kOptions, 1);
  const auto some = certify_all(sampler, images(), kSigma, o, 1);
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].counts.selected == images()[i].label) {
      expect_same(all[i], some[i]);
    } else {
      EXPECT_EQ(some[i].counts.n, 0);
      EXPECT_EQ(some[i].predict, some[i].counts.selected);
    }
  }
}

TEST(SequentialTest, LatchesThatDoNotHoldAreFound) {
  const std::vector<double> ladder = ladder_of({0.25, 0.5});
  const Counts counts = {0, 500, 490, 10};
  const std::vector<Latch> good = {{100, 100}, {119, 120}, {490, 500}};
  const auto hold = [&](const std::vector<Latch>& latches, double alpha = 0.001) {
    return latches_hold(counts, latches, ladder, kSigma, alpha, kFloatNoise);
  };
  EXPECT_TRUE(hold({good[0], good[1]}));
  EXPECT_TRUE(hold({}));
  EXPECT_FALSE(hold(good));                      // 490 of 500 is not enough for 0.5
  EXPECT_FALSE(hold({{60, 100}}));               // nor 60 of 100 for 0
  EXPECT_FALSE(hold({good[0], good[1]}, 1e-9));  // nor anything at another alpha
  EXPECT_FALSE(hold({good[1], good[0]}));        // votes do not go away
  EXPECT_FALSE(hold({{491, 491}}));              // more than there were
  EXPECT_FALSE(hold({{0, 0}}));
  EXPECT_FALSE(hold({good[0], good[0], good[0], good[0]}));  // more than radii
}

TEST(SequentialTest, AnotherAlphaKeepsWhatHasItsEvidence) {
  const std::vector<double> ladder = ladder_of({0.25, 0.5});
  const Counts counts = {0, 500, 499, 1};
  const std::vector<Latch> latches = {{100, 100}, {144, 144}, {431, 432}};
  const auto at = [&](double alpha) {
    return latches_at(counts, latches, ladder, kSigma, alpha, kFloatNoise);
  };
  EXPECT_EQ(at(0.001).size(), 3U);
  EXPECT_EQ(at(0.1).size(), 3U);
  EXPECT_EQ(at(0.1)[0].n, 100);
  // Less than there was evidence for at its latch, but the votes after it helped.
  EXPECT_EQ(at(1e-12).size(), 2U);
  EXPECT_EQ(at(1e-12)[1].n, 500);
  EXPECT_TRUE(at(1e-300).empty());
  for (const double alpha : {0.1, 0.001, 1e-6, 1e-12}) {
    EXPECT_TRUE(latches_hold(counts, at(alpha), ladder, kSigma, alpha, kFloatNoise)) << alpha;
  }
}

TEST(SequentialTest, WhatIsNotValidIsRefused) {
  const auto refused = [](const CertifyOptions& o) {
    try {
      check_certify_options(o, kSigma, kFloatNoise);
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(refused({.radii = {0.25, 0.5, 0.75}}), "");
  EXPECT_NE(refused({.radius = RadiusKind::kMulticlass, .radii = {0.25}}).find("multiclass"),
            std::string::npos);
  EXPECT_NE(refused({.radii = {0.25}, .plan = 0.02}).find("plan"), std::string::npos);
  EXPECT_NE(refused({.radii = {0.25}, .beta = 0}).find("beta"), std::string::npos);
  EXPECT_NE(refused({.radii = {0.25, -0.1}}).find("-0.1"), std::string::npos);
  EXPECT_NE(refused({.radii = {static_cast<double>(NAN)}}), "");
  EXPECT_NE(refused({.radii = {0.25, 1.0}}).find("1 cannot be certified by 100000 votes"),
            std::string::npos);
  EXPECT_NE(refused({.radii = {1e9}}).find("cannot be certified"), std::string::npos);
  std::vector<double> many;
  for (int i = 0; i < 2000; ++i) many.push_back(1e-4 * i);
  EXPECT_NE(refused({.radii = many}).find("too many"), std::string::npos);
}

}  // namespace
}  // namespace fedsmooth
