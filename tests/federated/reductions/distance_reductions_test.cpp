// Krum, multi-Krum, the geometric median, and clipping.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "fedsmooth/federated/reductions/reductions.h"
#include "tests/arrays.h"
#include "tests/federated/small_training.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

const Network kLinear{"linear", {2, 1, 1}, {{Layer::Kind::kLinear, "linear", 33}}};

// A kernel [33, 2] and a bias [33].
Weights weights_of(int64_t client) {
  return {uniform({33, 2}, 10 + client), uniform({33}, 50 + client)};
}

// Client k holds k + 1 of the cohort's images. The last `far` lie far off, in one place.
RoundResult cohort_of(int64_t clients, int64_t far = 0) {
  RoundResult cohort;
  const auto images = static_cast<double>(clients * (clients + 1)) / 2;
  for (int64_t k = 0; k < clients; ++k) {
    Weights weights = weights_of(k);
    if (k >= clients - far) weights[0] = each(weights[0], [](float w) { return 50 + w / 1000; });
    cohort.each.push_back({2 * k, static_cast<double>(k + 1) / images, weights});
  }
  return cohort;
}

std::vector<double> flat(const Weights& weights) {
  std::vector<double> values;
  for (const Array& w : weights) {
    for (const float value : values_of(w)) values.push_back(value);
  }
  return values;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double square = 0;
  for (size_t i = 0; i < a.size(); ++i) square += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(square);
}

std::vector<size_t> krum_order(const RoundResult& cohort, int64_t bad) {
  std::vector<double> scores;
  for (const ClientWeights& one : cohort.each) {
    std::vector<double> squares;
    for (const ClientWeights& other : cohort.each) {
      if (&other == &one) continue;
      squares.push_back(std::pow(distance(flat(one.weights), flat(other.weights)), 2));
    }
    std::sort(squares.begin(), squares.end());
    squares.resize(cohort.each.size() - bad - 2);
    scores.push_back(std::accumulate(squares.begin(), squares.end(), 0.0));
  }
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] < scores[b]; });
  return order;
}

TEST(DistanceReductionsTest, KrumTakesTheClientWithTheNearestNeighbours) {
  for (const auto& [clients, bad] : {std::pair(3, 0), {5, 1}, {9, 3}, {12, 2}}) {
    const RoundResult cohort = cohort_of(clients, bad);
    const size_t best = krum_order(cohort, bad).front();
    EXPECT_LT(best, static_cast<size_t>(clients - bad));
    expect_same(reduce({.kind = "krum", .assumed_bad = bad}, kLinear, cohort, weights_of(0)),
                cohort.each[best].weights);
  }
}

TEST(DistanceReductionsTest, MultiKrumAveragesTheBest) {
  for (const auto& [clients, bad] : {std::pair(3, 0), {5, 1}, {9, 3}, {12, 2}}) {
    const RoundResult cohort = cohort_of(clients, bad);
    std::vector<size_t> best = krum_order(cohort, bad);
    best.resize(clients - bad);
    std::vector<double> expected(33 * 3, 0.0);
    for (const size_t k : best) {
      const std::vector<double> one = flat(cohort.each[k].weights);
      for (size_t i = 0; i < one.size(); ++i) {
        expected[i] += one[i] / static_cast<double>(best.size());
      }
    }
    const std::vector<double> found =
        flat(reduce({.kind = "multi-krum", .assumed_bad = bad}, kLinear, cohort, weights_of(0)));
    EXPECT_LT(distance(found, expected), 1e-6);
    for (const double value : found) EXPECT_LT(value, 1.0);  // none of those far off
  }
}

TEST(DistanceReductionsTest, KrumNeedsMoreThanTwiceTheBadClients) {
  const AggregateOptions o{.kind = "krum", .assumed_bad = 2};
  check_aggregate_options(o, 7);
  const std::string few =
      "aggregate.kind=\"krum\": with these options needs at least 7 clients, a round has 6";
  EXPECT_EQ(refusal([&] { check_aggregate_options(o, 6); }), few);
  EXPECT_EQ(refusal([&] { reduce(o, kLinear, cohort_of(6), weights_of(0)); }), few);
}

// Two of seven clients are bad. What the bad ones sent was dropped or not: the others are reduced
// alike. More dropped clients than were assumed leave no bad ones to look for.
TEST(DistanceReductionsTest, DroppedClientsCountAsBadOnes) {
  for (const std::string kind : {"krum", "multi-krum"}) {
    const AggregateOptions o{.kind = kind, .assumed_bad = 2};
    RoundResult kept = cohort_of(7, 2);
    const Weights expected = reduce(o, kLinear, kept, weights_of(0));
    kept.each.resize(5);
    kept.dropped = 2;
    expect_same(reduce(o, kLinear, kept, weights_of(0)), expected);
    kept.each.resize(3);
    kept.dropped = 4;
    reduce(o, kLinear, kept, weights_of(0));
    kept.each.resize(2);
    kept.dropped = 5;
    EXPECT_EQ(refusal([&] { reduce(o, kLinear, kept, weights_of(0)); }),
              "aggregate.kind=\"" + kind +
                  "\": with these options needs at least 3 clients, a round has 2");
  }
}

// Distances of trained weights alone: client 3 lies apart in them, and its running variance is the
// only usual one.
TEST(DistanceReductionsTest, RunningStatisticsDecideNothing) {
  const Network network{"norm", {2, 3, 3}, {{Layer::Kind::kBatchNorm, "norm"}}};
  RoundResult cohort;
  for (int64_t k = 0; k < 5; ++k) {
    const float weight = k == 3 ? 9.0f : 1.0f + 0.125f * static_cast<float>(k * k);
    const float variance = k == 3 ? 1.0f : 1e6f * static_cast<float>(k * k + 1);
    cohort.each.push_back(
        {k, 0.2, {Array::full({2}, weight), Array({2}), Array({2}), Array::full({2}, variance)}});
  }
  RoundResult plain = cohort;  // with the same statistics for all
  for (ClientWeights& one : plain.each) one.weights[3] = Array::full({2}, 1);
  const Weights& global = plain.each[0].weights;
  for (const std::string kind : {"krum", "multi-krum", "geometric-median"}) {
    SCOPED_TRACE(kind);
    const AggregateOptions o{.kind = kind, .assumed_bad = 1};
    const Weights found = reduce(o, network, cohort, global);
    expect_same({found[0]}, {reduce(o, network, plain, global)[0]});
    EXPECT_LT(found[0].floats()[0], 4);
    EXPECT_GT(found[3].floats()[0], 1e5);  // of the clients chosen, or of all by their weights
  }
  // Client 1 is nearest to clients 0 and 2, and its statistics come along.
  const Weights krum = reduce({.kind = "krum", .assumed_bad = 1}, network, cohort, global);
  expect_same(krum, cohort.each[1].weights);
}

// The steps once more in double; and many of them end where the sum of distances is least: no
// small step from there makes it smaller.
TEST(DistanceReductionsTest, TheGeometricMedianIsWeiszfelds) {
  const RoundResult cohort = cohort_of(7, 2);
  std::vector<double> z(33 * 3, 0.0);
  std::vector<double> b;
  for (const ClientWeights& one : cohort.each) b.push_back(one.share);
  for (int64_t iterations = 0; iterations <= 10; ++iterations) {
    const double total = std::accumulate(b.begin(), b.end(), 0.0);
    std::fill(z.begin(), z.end(), 0.0);
    for (size_t k = 0; k < b.size(); ++k) {
      const std::vector<double> one = flat(cohort.each[k].weights);
      for (size_t i = 0; i < z.size(); ++i) z[i] += b[k] / total * one[i];
    }
    for (size_t k = 0; k < b.size(); ++k) {
      b[k] = cohort.each[k].share / distance(z, flat(cohort.each[k].weights));
    }
    if (iterations == 0) continue;
    const AggregateOptions o{.kind = "geometric-median", .iterations = iterations};
    EXPECT_LT(distance(flat(reduce(o, kLinear, cohort, weights_of(0))), z), 1e-4) << iterations;
  }
  const auto cost = [&](const std::vector<double>& at) {
    double sum = 0;
    for (const ClientWeights& one : cohort.each) sum += one.share * distance(at, flat(one.weights));
    return sum;
  };
  const std::vector<double> last =
      flat(reduce({.kind = "geometric-median", .iterations = 200}, kLinear, cohort, weights_of(0)));
  for (size_t i = 0; i < last.size(); i += 7) {
    for (const double step : {-0.05, 0.05}) {
      std::vector<double> moved = last;
      moved[i] += step;
      EXPECT_GT(cost(moved), cost(last)) << i;
    }
  }
}

// Where all agree, every distance is below the smoothing.
TEST(DistanceReductionsTest, TheGeometricMedianOfEqualClientsIsTheirs) {
  RoundResult cohort;
  for (int64_t k = 0; k < 4; ++k) cohort.each.push_back({k, 0.25, weights_of(0)});
  const Weights found = reduce({"geometric-median"}, kLinear, cohort, weights_of(1));
  for (size_t i = 0; i < found.size(); ++i) EXPECT_LT(difference(found[i], weights_of(0)[i]), 1e-7);
}

TEST(DistanceReductionsTest, ClippingShortensLongUpdatesAlone) {
  const Weights global = weights_of(0);
  RoundResult cohort = cohort_of(3, 1);
  const double near = distance(flat(cohort.each[1].weights), flat(global));
  const double far = distance(flat(cohort.each[2].weights), flat(global));
  const double clip = 2 * near;
  ASSERT_LT(clip, far);
  // One client at a time, so that the mean shows what was made of it.
  for (const size_t k : {1, 2}) {
    RoundResult alone;
    alone.each = {{0, 1.0, cohort.each[k].weights}};
    const Weights found = reduce({.kind = "mean", .clip = clip}, kLinear, alone, global);
    const double length = k == 1 ? 1 : clip / far;
    std::vector<double> expected = flat(global);
    const std::vector<double> sent = flat(cohort.each[k].weights);
    for (size_t i = 0; i < sent.size(); ++i) expected[i] += (sent[i] - expected[i]) * length;
    EXPECT_LT(distance(flat(found), expected), 1e-5);
  }
}

TEST(DistanceReductionsTest, AClipThatNobodyMeetsIsThePlainMeanToTheBit) {
  const RoundResult cohort = cohort_of(9);
  RoundResult summed;
  for (const ClientWeights& one : cohort.each) {
    summed.sum.add(one.weights, parameters(kLinear), one.share);
  }
  expect_same(reduce({.kind = "mean", .clip = 1e6}, kLinear, cohort, weights_of(0)),
              reduce({"mean"}, kLinear, summed, weights_of(0)));
}

TEST(DistanceReductionsTest, ClippingLeavesRunningStatisticsAlone) {
  const Network network{"norm", {2, 3, 3}, {{Layer::Kind::kBatchNorm, "norm"}}};
  const auto weights = [](float weight, float variance) {
    return Weights{Array::full({2}, weight), Array({2}), Array({2}), Array::full({2}, variance)};
  };
  RoundResult cohort;
  cohort.each = {{0, 1.0, weights(4, 100)}};
  const Weights found =
      reduce({.kind = "mean", .clip = std::sqrt(2.0)}, network, cohort, weights(1, 1));
  EXPECT_FLOAT_EQ(found[0].floats()[0], 2);  // moved by 3 on two axes, shortened to 1
  EXPECT_EQ(found[3].floats()[0], 100);
}

}  // namespace
}  // namespace fedsmooth
