// A centralized run: its rounds are intervals of one training.
#include <gtest/gtest.h>

#include "fedsmooth/engine/reference/reference_passes.h"
#include "fedsmooth/engine/threaded_executor.h"
#include "fedsmooth/federated/train.h"
#include "tests/arrays.h"
#include "tests/federated/small_training.h"
#include "tests/layers.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

// With a batch norm, whose running statistics go from round to round too.
const Network& normed_network() {
  static const Network network = [] {
    Layer conv{Layer::Kind::kConv, "conv", 4, 3, 4, 1};
    conv.bias = false;
    return Network{"normed",
                   {3, 32, 32},
                   {normalize({0.5, 0.5, 0.5}, {0.5, 0.4, 0.3}),
                    conv,
                    {Layer::Kind::kBatchNorm, "norm"},
                    {Layer::Kind::kRelu},
                    {Layer::Kind::kAvgPool},
                    {Layer::Kind::kLinear, "linear", 10}}};
  }();
  return network;
}

LocalTask normed_task() {
  LocalTask task{normed_network(), shapes(), /*augment=*/true, Method::kGaussian};
  task.local = {.steps = 3, .batch = 8, .passes = 2, .learning_rate = 0.05};
  return task;
}

// From `state` to the last of so many rounds of so many steps.
ServerState train_centralized(Executor& executor, LocalTask task, int64_t rounds, int64_t steps,
                              ServerState state) {
  task.local.steps = steps;
  TrainOptions options{.mode = Mode::kCentralized, .rounds = rounds, .clients_per_round = 1};
  options.local = task.local;
  const Partition whole = partition(PartitionKind::kWhole);
  train({task, options, whole, state, [](const ServerState&, const RoundReport&) { return true; }},
        executor);
  return state;
}

TEST(CentralizedTest, RoundsOfFewStepsAreOneRoundOfMany) {
  for (const LocalTask& task : {small_task(Method::kSmoothAdv), normed_task()}) {
    for (const MakePasses& make : {MakePasses(reference_passes), MakePasses(fastest_passes)}) {
      ThreadedExecutor executor(1, make);
      const ServerState once = train_centralized(executor, task, 1, 6, start(task));
      for (const int64_t rounds : {2, 6}) {
        const ServerState state =
            train_centralized(executor, task, rounds, 6 / rounds, start(task));
        expect_same(state.global, once.global);
        expect_same(state.velocity, once.velocity);
      }
    }
  }
}

TEST(CentralizedTest, AnInterruptedRunContinuesByItsMomentum) {
  ThreadedExecutor executor(1);
  const LocalTask task = small_task(Method::kGaussian);
  const ServerState whole = train_centralized(executor, task, 3, 2, start(task));
  const ServerState part = train_centralized(executor, task, 1, 2, start(task));
  expect_same(train_centralized(executor, task, 3, 2, part).global, whole.global);
  ServerState without = part;
  without.velocity.clear();
  EXPECT_FALSE(
      same_bits(train_centralized(executor, task, 3, 2, without).global[0], whole.global[0]));
}

TEST(CentralizedTest, ImagesFollowEachOtherFromRoundToRound) {
  LocalTask task = small_task(Method::kStandard);
  const std::vector<int64_t> images = images_of_client_3();
  task.continuous = true;
  task.local.steps = 12;  // more images than there are
  const std::vector<int64_t> all = images_of_round(task, images, 5, 0);
  task.local.steps = 6;
  std::vector<int64_t> halves = images_of_round(task, images, 5, 0);
  const std::vector<int64_t> second = images_of_round(task, images, 5, 1);
  halves.insert(halves.end(), second.begin(), second.end());
  EXPECT_EQ(halves, all);
}

// Of a federated run they begin anew.
TEST(CentralizedTest, ClientsOfAFederationKeepNothing) {
  const LocalTask task = small_task(Method::kStandard);
  EXPECT_EQ(task.first_step(7), 0);
  EXPECT_EQ(task.stream_round(7), 7);
  const auto passes = fastest_passes(task.network);
  const Update update = local_train(task, *passes, start().global, 3, images_of_client_3(), 7);
  EXPECT_TRUE(update.velocity.empty());
}

// A convolution by large numbers: running variances beyond what trained weights may have in an
// average, and weights beyond it too.
TEST(CentralizedTest, NoBoundOfAnAverageEndsARun) {
  const LocalTask task = normed_task();
  ServerState begin = start(task);
  begin.global[0] = each(begin.global[0], [](float w) { return 1e5f * w; });
  ThreadedExecutor executor(1, reference_passes);
  const ServerState once = train_centralized(executor, task, 1, 2, begin);
  const ServerState twice = train_centralized(executor, task, 2, 1, begin);
  expect_same(twice.global, once.global);
  EXPECT_GT(largest(once.global[0]), 4096);
  EXPECT_GT(largest(once.global[4]), 1e6);  // running_var
}

TEST(CentralizedTest, AValueThatIsNotFiniteEndsTheRunByItsName) {
  LocalTask task = normed_task();
  task.local.learning_rate = 1e38;
  ThreadedExecutor executor(1, reference_passes);
  EXPECT_EQ(refusal([&] { train_centralized(executor, task, 2, 2, start(task)); }),
            "round 1: every client was dropped (client 0: conv.weight is not finite); "
            "train.local.learning_rate=1e+38 or smoothing.sigma=0.25 may be too large");
}

}  // namespace
}  // namespace fedsmooth
