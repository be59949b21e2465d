#ifdef FEDSMOOTH_TORCH

#include "fedsmooth/engine/torch/steady_batch.h"

#include <gtest/gtest.h>

#include "tests/refusal.h"
#include "tests/smoothing/classifiers.h"

namespace fedsmooth {
namespace {

// The first two pixels as logits.
Array two_pixels(const Array& x) {
  return image_by_image(
      2, [](Pixels pixels, float* logits) { std::copy_n(pixels.begin(), 2, logits); })(x);
}

/// The first two pixels are the logits; in batches beyond `steady` the last rows differ in
/// rounding.
Classifier steady_up_to(int64_t steady) {
  return [steady](const Array& x) {
    const Array logits = two_pixels(x);
    if (x.size(0) <= steady) return logits;
    Array last = logits.part(x.size(0) - 7, 7);
    for (int64_t i = 0; i < last.count(); ++i) last.floats()[i] *= 1 + 0x1p-20f;
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
  const Classifier f = [](const Array& x) {
    Array z = two_pixels(x);
    float mean[2] = {};
    for (int64_t i = 0; i < z.count(); ++i) mean[i % 2] += z.floats()[i] / x.size(0);
    for (int64_t i = 0; i < z.count(); ++i) z.floats()[i] -= mean[i % 2];
    return z;
  };
  const std::string message = refusal([&] { choose(f); });
  EXPECT_NE(message.find("other images"), std::string::npos) << message;
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(SteadyBatchTest, NeedsLibTorch) { GTEST_SKIP() << "built without LibTorch"; }
#endif
