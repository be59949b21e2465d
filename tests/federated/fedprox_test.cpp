// FedProx: the gradient gets + mu (w - w_global).
#include <gtest/gtest.h>

#include "fedsmooth/engine/cpu/lane_network.h"
#include "tests/arrays.h"
#include "tests/federated/small_training.h"

namespace fedsmooth {
namespace {

Weights train_client(Passes& passes, int64_t steps, double mu, double momentum) {
  LocalTask task = small_task(Method::kGaussian);
  task.local.steps = steps;
  task.local.momentum = momentum;
  task.local.mu = mu;
  return local_train(task, passes, start().global, 3, images_of_client_3(), 0).weights;
}

// At the first step w = w_global, so that two runs part at the second one, by rate mu (w_1 - w_0).
// Values of up to 1 round by 2^-25.
TEST(FedproxTest, TheSecondStepIsPulledToTheGlobalWeights) {
  const double rate = small_task(Method::kGaussian).local.learning_rate, mu = 3;
  for (const auto& make : {MakePasses(reference_passes), MakePasses(lane_passes)}) {
    const auto passes = make(small_network());
    const Weights w0 = start().global;
    const Weights w1 = train_client(*passes, 1, mu, 0), plain = train_client(*passes, 2, 0, 0);
    const Weights pulled = train_client(*passes, 2, mu, 0);
    expect_same(w1, train_client(*passes, 1, 0, 0));
    double most = 0;
    for (size_t i = 0; i < w0.size(); ++i) {
      for (int64_t j = 0; j < w0[i].count(); ++j) {
        const double pull = rate * mu * (double{w1[i].floats()[j]} - w0[i].floats()[j]);
        ASSERT_NEAR(pulled[i].floats()[j], plain[i].floats()[j] - pull, 2e-7) << i << " " << j;
        most = std::max(most, std::abs(pull));
      }
    }
    EXPECT_GT(most, 1e-4);
  }
}

double distance(const Weights& a, const Weights& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    for (int64_t j = 0; j < a[i].count(); ++j) {
      const double apart = double{a[i].floats()[j]} - b[i].floats()[j];
      sum += apart * apart;
    }
  }
  return sum;
}

TEST(FedproxTest, ClientsStayNearerToTheGlobalWeights) {
  const auto passes = lane_passes(small_network());
  const Weights from = start().global;
  const double free = distance(train_client(*passes, 4, 0, 0.9), from);
  EXPECT_LT(distance(train_client(*passes, 4, 3, 0.9), from), 0.9 * free);
}

}  // namespace
}  // namespace fedsmooth
