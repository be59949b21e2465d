// An objective in one file: label smoothing, for which the library has nothing. A score, a row, and
// train.method may name it.
#include <gtest/gtest.h>

#include "fedsmooth/config/experiment.h"
#include "fedsmooth/distributed/remote_executor.h"
#include "fedsmooth/engine/threaded_executor.h"
#include "tests/federated/small_training.h"
#include "tests/refusal.h"

#ifdef FEDSMOOTH_CUDA
#include "fedsmooth/engine/cuda/batched_executor.h"
#endif

namespace fedsmooth {
namespace {

// -(1 - lambda) log p_y - lambda mean_k log p_k, summed over the copies.
void score_smoothed_labels(ScoredImage<double>& image) {
  const double lambda = image.weights.lambda, even = lambda / image.classes;
  for (int i = 0; i < image.copies; ++i) {
    const int row = i * image.stride;
    const auto log_p = softmax(image.logits + row, image.classes, image.p + row);
    for (int k = 0; k < image.classes; ++k) {
      const double target = even + (k == image.y ? 1 - lambda : 0);
      image.terms.fit -= target * log_p[k];
      image.gradient[row + k] = image.p[row + k] - target;
    }
  }
}

ScoreWeights<double> weights_of(const LocalTask& task) {
  return {task.objective.lambda.value_or(0.1)};
}

Method label_smoothing() {
  static const Method method = add_objective({.name = "label-smoothing",
                                              .score = score_smoothed_labels,
                                              .keys = {"lambda"},
                                              .weights = weights_of});
  return method;
}

TEST(ObjectiveExtensionTest, IsTrainedByItsName) {
  label_smoothing();
  const Experiment e = parse_experiment("train.method = 'label-smoothing'\n", "e.toml");
  const auto loss_after = [&](int64_t rounds) {
    ServerState state = start();
    ThreadedExecutor executor(2);
    double loss = 0;
    train({small_task(e.train.method),
           {.rounds = rounds, .clients_per_round = 4},
           partition(PartitionKind::kIid),
           state,
           [&](const auto&, const RoundReport& r) {
             loss = r.telemetry.mean_loss();
             return true;
           }},
          executor);
    return loss;
  };
  EXPECT_LT(loss_after(6), loss_after(1));
}

TEST(ObjectiveExtensionTest, WithoutItsWeightItIsGaussianToTheBit) {
  LocalTask task = small_task(label_smoothing());
  task.objective.lambda = 0;
  const auto passes = reference_passes(task.network);
  const Update found = local_train(task, *passes, start().global, 3, images_of_client_3(), 0);
  const Update expected = local_train(small_task(Method::kGaussian), *passes, start().global, 3,
                                      images_of_client_3(), 0);
  expect_same(found.weights, expected.weights);
}

#ifdef FEDSMOOTH_CUDA
TEST(ObjectiveExtensionTest, AGpuThatDoesNotKnowItRefusesItByName) {
  const Weights global = start().global;
  const BatchedExecutor executor;
  const auto why = executor.unsupported({small_task(label_smoothing()), global, {}, 0});
  ASSERT_TRUE(why);
  EXPECT_NE(why->find("label-smoothing"), std::string::npos) << *why;
  EXPECT_FALSE(executor.unsupported({small_task(Method::kConsistency), global, {}, 0}));
}

// Forms that no kernel has: a score, and examples.
TEST(ObjectiveExtensionTest, AGpuRefusesFormsThatItDoesNotKnow) {
  const Weights global = start().global;
  const BatchedExecutor executor;
  constexpr auto kScore = static_cast<ScoreKind>(99);
  constexpr auto kExamples = static_cast<BatchedExamples>(99);
  for (const BatchedForm& form :
       {BatchedForm{kScore}, BatchedForm{ScoreKind::kCrossEntropy, kExamples}}) {
    const std::string name = form.score == kScore ? "unknown-score" : "unknown-examples";
    const Method method =
        add_objective({.name = name, .score = score_smoothed_labels, .batched = form});
    const auto why = executor.unsupported({small_task(method), global, {}, 0});
    EXPECT_EQ(why.value_or(""),
              "train.method=\"" + name + "\": the GPU engine does not have it; use --device=cpu");
  }
}

TEST(ObjectiveExtensionTest, AGpuRefusesToMixWhatIsAttacked) {
  const Weights global = start().global;
  const Method method =
      add_objective({.name = "attacked-and-mixed",
                     .attacks = true,
                     .score = score_smoothed_labels,
                     .batched = BatchedForm{ScoreKind::kSmoothMix, BatchedExamples::kMixed}});
  EXPECT_EQ(BatchedExecutor().unsupported({small_task(method), global, {}, 0}).value_or(""),
            "train.method=\"attacked-and-mixed\": the GPU engine does not have it; use "
            "--device=cpu");
  EXPECT_FALSE(BatchedExecutor().unsupported({small_task(Method::kSmoothMix), global, {}, 0}));
}
#endif

TEST(ObjectiveExtensionTest, ACpuRefusesAnObjectiveWithoutAScore) {
  const Method method = add_objective({.name = "no-score"});
  const LocalTask task = small_task(method);
  const Partition clients = partition(PartitionKind::kIid);
  ServerState state = start();
  for (const bool threaded : {false, true}) {
    SerialExecutor serial(reference_passes);
    ThreadedExecutor parallel(1);
    Executor& executor = threaded ? static_cast<Executor&>(parallel) : serial;
    const std::string expected = "train.method=\"no-score\": has no score for the CPU";
    EXPECT_EQ(refusal([&] {
                train({task,
                       {.rounds = 1, .clients_per_round = 2},
                       clients,
                       state,
                       [](const auto&, const auto&) { return true; }},
                      executor);
              }),
              expected);
    const NodeTask asked{0, 40, {3}, state.global};
    EXPECT_EQ(refusal([&] { run_node_task(executor, task, {.rounds = 1}, clients, asked); }),
              expected);
  }
}

}  // namespace
}  // namespace fedsmooth
