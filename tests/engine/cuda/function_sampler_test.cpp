// Votes of a function on the GPU that is not ours: an image's first pixels are its logits, which a
// strided copy finds.
#ifdef FEDSMOOTH_CUDA

#include "fedsmooth/engine/cuda/function_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/random.h"
#include "tests/arrays.h"
#include "tests/engine/cuda/gpu.h"

namespace fedsmooth {
namespace {

constexpr int64_t kClasses = 5, kBatch = 64;

Array first_pixels(const Array& images) {
  const int64_t size = images.count() / images.size(0);
  Array logits({images.size(0), kClasses});
  for (int64_t i = 0; i < images.size(0); ++i) {
    std::copy_n(images.floats() + i * size, kClasses, logits.floats() + i * kClasses);
  }
  return logits;
}

class FunctionSamplerTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    logits_ = DeviceArray<float>(kBatch * kClasses);
    on_gpu_.call = [this](float* images, const Sizes& sizes) -> const float* {
      const int64_t size = sizes[1] * sizes[2] * sizes[3];
      check_cuda(
          cudaMemcpy2DAsync(logits_.data(), kClasses * sizeof(float), images, size * sizeof(float),
                            kClasses * sizeof(float), sizes[0], cudaMemcpyDeviceToDevice, nullptr),
          "logits");
      return logits_.data();
    };
  }

  const BaseClassifier f_{[] { return first_pixels; }, kClasses, kBatch, "test"};
  DeviceArray<float> logits_;
  DeviceFunction on_gpu_;
};

TEST_F(FunctionSamplerTest, VotesAreThoseOfTheCpuBitForBit) {
  SerialSampler serial(f_);
  const auto sampler = function_sampler(f_, on_gpu_);
  for (const int64_t n : {1, 64, 65, 1000}) {
    const VoteRequest request{
        uniform({3, 8, 8}, 1), 0.5, n, {make_key(3, Purpose::kEstimation), 9}};
    EXPECT_EQ(sampler->count(request), serial.count(request)) << n;
  }
}

TEST_F(FunctionSamplerTest, LogitsThatAreNotFiniteVoteForNobody) {
  const auto sampler = function_sampler(f_, on_gpu_);
  VoteRequest request{uniform({3, 8, 8}, 1), 0.5, 100, {make_key(3, Purpose::kEstimation), 9}};
  request.x.floats()[2] = std::nanf("");
  EXPECT_EQ(sampler->count(request), Votes(kClasses, 0));
}

}  // namespace
}  // namespace fedsmooth

#endif
