#include "fedsmooth/federated/reductions/reductions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/error.h"
#include "fedsmooth/engine/threaded_executor.h"
#include "tests/arrays.h"
#include "tests/federated/small_training.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

// Two tensors, one of them of more than one block of the sort. Few values, so that there are ties.
const Sizes kShapes[] = {{3, 211}, {5}};

Weights weights_of(int64_t client) {
  Weights weights;
  for (const Sizes& sizes : kShapes) {
    weights.push_back(each(uniform(sizes, 100 + client),
                           [](float x) { return std::round((x - 0.5f) * 40) / 7; }));
  }
  return weights;
}

RoundResult cohort_of(int64_t clients) {
  RoundResult cohort;
  for (int64_t k = 0; k < clients; ++k) {
    cohort.each.push_back({3 * k + 1, 1.0 / static_cast<double>(clients), weights_of(k)});
  }
  return cohort;
}

// All values of weight `i` of tensor `w`, sorted.
std::vector<float> column(const RoundResult& cohort, size_t w, int64_t i) {
  std::vector<float> values;
  for (const ClientWeights& one : cohort.each) values.push_back(one.weights[w].floats()[i]);
  std::sort(values.begin(), values.end());
  return values;
}

// Shapes matter to clipping alone.
Weights reduced(const AggregateOptions& options, const RoundResult& cohort,
                const Weights& global = weights_of(0)) {
  return reduce(options, small_network(), cohort, global);
}

// Floats round by 2^-24 of their size, each client's value in fixed point by 2^-51.
template <typename Expected>
void expect_each_weight(const Weights& found, const RoundResult& cohort, const Expected& expected) {
  for (size_t w = 0; w < found.size(); ++w) {
    for (int64_t i = 0; i < found[w].count(); ++i) {
      const double sought = expected(column(cohort, w, i));
      const double tolerance = std::abs(sought) * 0x1p-22 + 0x1p-44;
      ASSERT_NEAR(found[w].floats()[i], sought, tolerance) << w << " " << i;
    }
  }
}

const int64_t kCohorts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 31, 33, 100};

TEST(ReductionsTest, TheMedianIsTheMiddleOfEachWeight) {
  for (const int64_t clients : kCohorts) {
    const RoundResult cohort = cohort_of(clients);
    expect_each_weight(reduced({"median"}, cohort), cohort, [](const std::vector<float>& sorted) {
      const size_t n = sorted.size();
      return n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    });
  }
}

TEST(ReductionsTest, TheTrimmedMeanLeavesOutBothEndsOfEachWeight) {
  for (const int64_t clients : kCohorts) {
    for (const double trim : {0.0, 0.1, 0.25, 0.49}) {
      const RoundResult cohort = cohort_of(clients);
      const auto cut = static_cast<int64_t>(trim * static_cast<double>(clients));
      expect_each_weight(reduced({.kind = "trimmed-mean", .trim = trim}, cohort), cohort,
                         [&](const std::vector<float>& sorted) {
                           double sum = 0;
                           for (int64_t k = cut; k < clients - cut; ++k) sum += sorted[k];
                           return static_cast<float>(sum / static_cast<double>(clients - 2 * cut));
                         });
    }
  }
}

TEST(ReductionsTest, ResultsDoNotDependOnTheOrderOfClients) {
  for (const std::string& kind : reductions().names()) {
    if (reductions().find(kind).gather == Gather::kSum) continue;
    RoundResult cohort = cohort_of(9);
    const Weights expected = reduced({kind}, cohort);
    for (const int turn : {1, 4, 7}) {
      std::rotate(cohort.each.begin(), cohort.each.begin() + turn, cohort.each.end());
      expect_same(reduced({kind}, cohort), expected);
    }
  }
}

TEST(ReductionsTest, ResultsDoNotDependOnTheServersThreads) {
  for (const std::string& kind : reductions().names()) {
    for (const double sfat : {1.0, 1.4}) {
      if (sfat > 1 && kind != "mean") continue;
      const RoundResult cohort = cohort_of(9);
      const Weights expected = reduced({.kind = kind, .sfat = sfat}, cohort);
      for (const int threads : {2, 5, 16}) {
        expect_same(reduced({.kind = kind, .sfat = sfat, .threads = threads}, cohort), expected);
      }
    }
  }
}

TEST(ReductionsTest, ZeroThreadsOrClientsAreABug) {
  EXPECT_THROW(reduced({.kind = "median", .threads = 0}, cohort_of(3)), Bug);
  EXPECT_THROW(reduced({.kind = "median"}, RoundResult{}), Bug);
}

// The fixed point of both is the same.
TEST(ReductionsTest, WithNothingLeftOutEqualClientsGiveTheMeanToTheBit) {
  for (const int64_t clients : kCohorts) {
    if (clients == 1) continue;  // its weights stay as they are
    for (const int64_t broken : {0, 1, 3}) {
      RoundResult kept = cohort_of(clients), summed;
      const double share = 1.0 / static_cast<double>(clients + broken);
      for (const ClientWeights& one : kept.each) {
        summed.sum.add(one.weights, parameters(small_network()), share);
      }
      kept.dropped = summed.dropped = broken;
      const Weights mean = reduced({"mean"}, summed);
      expect_same(reduced({.kind = "trimmed-mean", .trim = 0}, kept), mean);
      if (clients >= 3) expect_same(reduced({"multi-krum"}, kept), mean);
    }
  }
}

TEST(ReductionsTest, ABrokenClientIsLeftOutAndCounted) {
  const Cohort cohort{{4, 5, 6}, {{0}, {1}, {2}}, 3};
  const Weights one = {Array::full({2}, 1)}, two = {Array::full({2}, 2)};
  for (const float bad : {NAN, INFINITY, 5000.0f}) {
    for (const Gather gather : {Gather::kSum, Gather::kEach}) {
      const Round round{small_task(Method::kStandard), one, cohort, 0, 0, gather};
      RoundResult result;
      result.add(round, 0, {one, {}});
      result.add(round, 1, {{Array::of({2}, {1.0f, bad})}, {}});
      result.add(round, 2, {two, {}});
      EXPECT_EQ(result.dropped, 1);
      EXPECT_FALSE(result.nothing_kept());
      for (const std::string kind : {"mean", "median", "trimmed-mean"}) {
        if (reductions().find(kind).gather != gather) continue;
        EXPECT_EQ(values_of(reduced({kind}, result, one)[0]), (std::vector<float>{1.5f, 1.5f}));
      }
    }
  }
}

// Two of five clients far off: the mean follows them, the robust ones stay among the others.
TEST(ReductionsTest, AFewBadClientsMoveOnlyTheMean) {
  RoundResult kept, summed;
  for (int64_t k = 0; k < 5; ++k) {
    const Weights weights = {Array::full({4}, k < 2 ? -1000.0f : static_cast<float>(k))};
    kept.each.push_back({k, 0.2, weights});
    summed.sum.add(weights, parameters(small_network()), 0.2);
  }
  const Weights like = {Array({4})};
  EXPECT_NEAR(reduced({"mean"}, summed, like)[0].floats()[0], -398.2, 1e-3);
  EXPECT_EQ(reduced({"median"}, kept, like)[0].floats()[0], 2);
  EXPECT_EQ(reduced({.kind = "trimmed-mean", .trim = 0.4}, kept, like)[0].floats()[0], 2);
}

// A network with a norm: of its tensors the second and third belong to that.
const Network kNormed{
    "normed", {1, 2, 2}, {{Layer::Kind::kBatchNorm, "norm"}, {Layer::Kind::kLinear, "linear", 3}}};

RoundResult cohort_with_losses(const std::vector<double>& losses) {
  RoundResult cohort;
  for (size_t k = 0; k < losses.size(); ++k) {
    Weights weights;
    for (const Parameter& p : parameters(kNormed)) {
      weights.push_back(uniform(p.shape, 50 + 7 * static_cast<int64_t>(k)));
    }
    const double share = static_cast<double>(k + 1) / 55;
    cohort.each.push_back({static_cast<int64_t>(k), share, weights, losses[k]});
  }
  return cohort;
}

// Ten clients, of which the two with the smallest losses weigh 1.4 times as much; 3 and 8 tie, and
// the smaller one counts. A loss that is not a number is never small.
TEST(ReductionsTest, SfatWeighsTheSmallestFifthOfTheLossesMore) {
  const RoundResult cohort = cohort_with_losses({5, NAN, 4, 1, 3, 0.5, 6, 7, 1, 2});
  const Weights& global = cohort.each[0].weights;
  const Weights mean = reduce({}, kNormed, cohort, global);
  const Weights found = reduce({.sfat = 1.4}, kNormed, cohort, global);
  const std::vector<Parameter> known = parameters(kNormed);
  for (size_t w = 0; w < found.size(); ++w) {
    if (known[w].name.starts_with("norm")) {
      EXPECT_TRUE(same_bits(found[w], mean[w])) << known[w].name;
      continue;
    }
    for (int64_t i = 0; i < found[w].count(); ++i) {
      double sum = 0, total = 0;
      for (size_t k = 0; k < 10; ++k) {
        const double weight = cohort.each[k].share * (k == 3 || k == 5 ? 1.4 : 1);
        sum += weight * cohort.each[k].weights[w].floats()[i];
        total += weight;
      }
      ASSERT_NEAR(found[w].floats()[i], sum / total, 1e-6) << known[w].name;
    }
  }
  RoundResult turned = cohort;
  std::rotate(turned.each.begin(), turned.each.begin() + 4, turned.each.end());
  expect_same(reduce({.sfat = 1.4}, kNormed, turned, global), found);
  expect_same(reduce({.sfat = 1}, kNormed, cohort, global), mean);
  // Fewer than five clients have no fifth.
  const RoundResult few = cohort_with_losses({5, 1, 4, 2});
  for (size_t w = 0; w < found.size(); ++w) {
    EXPECT_LT(difference(reduce({.sfat = 1.4}, kNormed, few, global)[w],
                         reduce({}, kNormed, few, global)[w]),
              1e-6);
  }
}

TEST(ReductionsTest, SfatIsRefusedForOtherReductions) {
  EXPECT_EQ(refusal([] { check_aggregate_options({.kind = "median", .sfat = 1.4}, 10); }),
            "aggregate.sfat=1.4: weighs the clients of aggregate.kind=\"mean\", not of \"median\"");
  EXPECT_EQ(gathered_for(AggregateOptions{.sfat = 1.4}), Gather::kEach);
  EXPECT_EQ(gathered_for(AggregateOptions{}), Gather::kSum);
}

TEST(ReductionsTest, ResultsDoNotDependOnThreads) {
  const LocalTask task = linear_task();
  const Partition p = partition(PartitionKind::kMajorClass);
  for (const std::string& kind : reductions().names()) {
    TrainOptions options{.rounds = 2, .clients_per_round = 5};
    options.aggregate = {.kind = kind, .trim = 0.25, .assumed_bad = 1};
    const auto train_on = [&](Executor& executor) {
      ServerState state = start(task);
      train({task, options, p, state, [](const auto&, const auto&) { return true; }}, executor);
      return state.global;
    };
    SerialExecutor serial(reference_passes);
    const Weights expected = train_on(serial);
    EXPECT_FALSE(same_bits(expected[0], start(task).global[0]));
    for (const int threads : {1, 3}) {
      ThreadedExecutor threaded(threads, reference_passes);
      expect_same(train_on(threaded), expected);
    }
  }
}

TEST(ReductionsTest, ACohortThatDoesNotFitIsRefusedWithItsSize) {
  ModelOptions alexnet{"alexnet"};
  set_default_normalization(alexnet, "shapes", 3);
  const Network network = build_network(alexnet, {3, 32, 32}, 10);
  const int64_t bytes = bytes_of_cohort(network, 100);
  EXPECT_EQ(bytes, 100 * 4 * count_weights(network));
  check_cohort_fits(bytes, bytes);
  try {
    check_cohort_fits(bytes, bytes - 1);
    FAIL() << "it was not refused";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("0.99 GB"), std::string::npos) << error.what();
  }
  // Before the first round, and only where clients are kept.
  SerialExecutor executor(reference_passes);
  const LocalTask task = small_task(Method::kStandard);
  ServerState state = start();
  const Partition p = partition(PartitionKind::kIid);
  const Training run{task, {.clients_per_round = 12, .aggregate = {"median"}}, p, state, {}};
  const int64_t needed = bytes_of_cohort(task.network, 12);
  EXPECT_EQ(check_executor(run, executor, needed + 5), 5);
  EXPECT_THROW(check_executor(run, executor, needed - 1), Error);
  const Training mean{task, {.clients_per_round = 12}, p, state, {}};
  EXPECT_EQ(check_executor(mean, executor, needed - 1), needed - 1);
}

}  // namespace
}  // namespace fedsmooth
