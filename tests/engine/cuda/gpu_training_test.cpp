// Whole trainings on the GPU: as good as on the CPU, the same however they are cut.
#ifdef FEDSMOOTH_CUDA

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fedsmooth/data/sources.h"
#include "fedsmooth/engine/cuda/batched_executor.h"
#include "fedsmooth/engine/reference/reference_passes.h"
#include "fedsmooth/engine/threaded_executor.h"
#include "fedsmooth/federated/train.h"
#include "tests/engine/cuda/gpu.h"
#include "tests/engine/networks.h"

namespace fedsmooth {
namespace {

class GpuTrainingTest : public GpuTest {
 protected:
  GpuTrainingTest() {
    options_.rounds = 3;
    options_.clients_per_round = 5;
    options_.local = {.steps = 120, .batch = 30, .learning_rate = 0.05};
  }

  ServerState start() const { return {0, initial_weights(network_, Key{1}), {}}; }

  // The rounds from `state` on, at most `most` of them.
  ServerState train_on(Executor& executor, ServerState state, int64_t most = 100) const {
    LocalTask task{network_, data_, /*augment=*/false, Method::kStandard};
    task.local = options_.local;
    PartitionOptions clients;
    clients.clients = 20;
    clients.samples_per_client = 400;
    const Partition partition(clients, data_.labels, 10, 0);
    train({task, options_, partition, state,
           [&](const ServerState&, const RoundReport&) { return --most > 0; }},
          executor);
    return state;
  }

  // Share of test images that are right.
  double accuracy(const Weights& weights) const {
    const Array logits = reference_logits(network_, weights, to_unit_interval(test_.images));
    int64_t right = 0;
    for (int64_t i = 0; i < test_.size(); ++i) {
      const Array of_image = logits[i];
      const float *first = of_image.floats(), *end = first + of_image.count();
      right += std::max_element(first, end) - first == test_.label(i);
    }
    return static_cast<double>(right) / static_cast<double>(test_.size());
  }

  const Network network_ = named_network("small");
  const Dataset data_ = make_shapes(Split::kTrain, 4000, 0);
  const Dataset test_ = make_shapes(Split::kTest, 2000, 0);
  TrainOptions options_;
};

bool same(const Weights& a, const Weights& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same_bits(a[i], b[i])) return false;
  }
  return true;
}

TEST_F(GpuTrainingTest, ThreeRoundsAreAsGoodAsOnTheCpu) {
  BatchedExecutor gpu;
  ThreadedExecutor cpu(4);
  const double on_gpu = accuracy(train_on(gpu, start()).global);
  const double on_cpu = accuracy(train_on(cpu, start()).global);
  // Four standard errors of a difference of two shares.
  const double error = std::sqrt(2 * on_cpu * (1 - on_cpu) / static_cast<double>(test_.size()));
  EXPECT_GT(on_cpu, 0.2);  // it has learnt something
  EXPECT_NEAR(on_gpu, on_cpu, 4 * error);
}

TEST_F(GpuTrainingTest, TwoRunsAndAnInterruptedOneAreTheSame) {
  BatchedExecutor first, second, third, fourth;
  const ServerState whole = train_on(first, start());
  EXPECT_TRUE(same(train_on(second, start()).global, whole.global));
  const ServerState saved = train_on(third, start(), 1);
  EXPECT_EQ(saved.round, 1);
  EXPECT_TRUE(same(train_on(fourth, saved).global, whole.global));
}

TEST_F(GpuTrainingTest, AHundredClientsInWavesOfOneSevenAndAll) {
  LocalTask task{network_, data_, /*augment=*/true, Method::kSmoothAdv};
  task.local = {.steps = 2, .batch = 9, .learning_rate = 0.05};
  Cohort cohort;
  for (int64_t k = 0; k < 100; ++k) {
    cohort.clients.push_back(k);
    cohort.images.push_back({});
    for (int64_t i = 0; i < 10 + k; ++i) cohort.images.back().push_back((31 * k + i) % 4000);
    cohort.total += 10 + k;
  }
  const Weights global = start().global;
  const auto average = [&](int64_t wave) {
    BatchedExecutor executor(Precision::kBfloat16, wave);
    return run_round(executor, {task, global, cohort, 2})
        .sum.average(global, parameters(task.network));
  };
  const Weights all = average(100);
  EXPECT_FALSE(same(all, global));
  EXPECT_TRUE(same(average(7), all));
  EXPECT_TRUE(same(average(1), all));
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(GpuTrainingTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
