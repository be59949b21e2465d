#include "fedsmooth/engine/torch/steady_batch.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/model/refusal.h"
#include "tests/smoothing/classifiers.h"

namespace fedsmooth {
namespace {

/// The first two pixels are the logits; in batches beyond `steady` the last rows differ in
/// rounding.
Classifier steady_up_to(int64_t steady) {
  return [steady](const Tensor& x) {
    Tensor logits = x.flatten(1).narrow(1, 0, 2).clone();
    if (x.size(0) > steady) logits.narrow(0, x.size(0) - 7, 7).mul_(1 + 0x1p-20);
    return logits;
  };
}

BaseClassifier choose(const Classifier& f, std::vector<int64_t>* tried = nullptr) {
  const auto make = [&](int64_t batch) {
    if (tried != nullptr) tried->push_back(batch);
    return fixed_batch(f, 2, batch);
  };
  return largest_steady_batch(make, {1, 2, 2});
}

TEST(SteadyBatchTest, TakesTheLargestThatIsAFunction) {
  for (const int64_t steady : {4096, 2048, 1024, 512, 256}) {
    EXPECT_EQ(choose(steady_up_to(steady)).batch, steady);
  }
}

TEST(SteadyBatchTest, StopsAtTheFirst) {
  std::vector<int64_t> tried;
  EXPECT_EQ(choose(steady_up_to(5000), &tried).batch, 4096);
  EXPECT_EQ(tried, std::vector<int64_t>{4096});
}

TEST(SteadyBatchTest, RefusesWhatIsAFunctionAtNone) {
  std::vector<int64_t> tried;
  const std::string message = refusal([&] { choose(steady_up_to(255), &tried); });
  EXPECT_NE(message.find("position"), std::string::npos) << message;
  EXPECT_EQ(tried, (std::vector<int64_t>{4096, 2048, 1024, 512, 256}));
}

TEST(SteadyBatchTest, RefusesBatchStatistics) {
  const Classifier f = [](const Tensor& x) {
    const Tensor z = x.flatten(1).narrow(1, 0, 2);
    return z - z.mean(0);
  };
  const std::string message = refusal([&] { choose(f); });
  EXPECT_NE(message.find("other images"), std::string::npos) << message;
}

}  // namespace
}  // namespace fedsmooth
