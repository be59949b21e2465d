// Votes of a function on the GPU that is not ours: an image's first pixels are its logits, which a
// strided copy finds.
#ifdef FEDSMOOTH_CUDA

#include "fedsmooth/engine/cuda/function_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fedsmooth/base/random.h"
#include "fedsmooth/engine/cuda/vote_pass.h"
#include "fedsmooth/engine/samplers.h"
#include "tests/arrays.h"
#include "tests/engine/cuda/gpu.h"
#include "tests/refusal.h"
#include "tests/smoothing/uniform_noise.h"

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
      ++calls_;
      const int64_t size = sizes[1] * sizes[2] * sizes[3];
      check_cuda(
          cudaMemcpy2DAsync(logits_.data(), kClasses * sizeof(float), images, size * sizeof(float),
                            kClasses * sizeof(float), sizes[0], cudaMemcpyDeviceToDevice, nullptr),
          "logits");
      return logits_.data();
    };
  }

  BaseClassifier on_gpu() const {
    return function_classifier(on_gpu_, {3, 8, 8}, kClasses, kBatch, "test");
  }
  static VoteRequest request_for(int64_t n) {
    const Array x = each(uniform({3, 8, 8}, 1), [](float v) { return std::round(255 * v) / 255; });
    return {x, 0.5, n, {make_key(3, Purpose::kEstimation), 9}};
  }

  const BaseClassifier f_{[] { return first_pixels; }, kClasses, kBatch, "test"};
  DeviceArray<float> logits_;
  DeviceFunction on_gpu_;
  int calls_ = 0;
};

TEST_F(FunctionSamplerTest, VotesAreThoseOfTheCpuBitForBit) {
  for (const NoiseLaw* law : {&kFloatNoise, &kExactNoise}) {
    SerialSampler serial(f_, *law);
    const auto sampler = make_sampler(on_gpu(), *law, 1);
    std::vector<VoteRequest> requests;
    for (const int64_t n : {1, 64, 65, 1000}) {
      requests.push_back(request_for(n));
      EXPECT_EQ(sampler->count(requests.back()), serial.count(requests.back())) << n;
    }
    EXPECT_EQ(sampler->count_all(requests), serial.count_all(requests));
  }
}

TEST_F(FunctionSamplerTest, LogitsThatAreNotFiniteVoteForNobody) {
  const auto sampler = make_sampler(on_gpu(), kFloatNoise, 1);
  VoteRequest request = request_for(100);
  request.x.floats()[2] = std::nanf("");
  EXPECT_EQ(sampler->count(request), Votes(kClasses, 0));
}

// The function that votes is the one that is checked: this one answers by an image's position.
TEST_F(FunctionSamplerTest, IsRefusedIfItDependsOnThePosition) {
  const auto honest = on_gpu_.call;
  on_gpu_.call = [=, this](float* images, const Sizes& sizes) -> const float* {
    honest(images, sizes);
    check_cuda(cudaMemsetAsync(logits_.data(), 0, kClasses * sizeof(float), nullptr), "logits");
    return logits_.data();
  };
  EXPECT_THROW(make_sampler(on_gpu(), kFloatNoise, 1)->check({3, 8, 8}), DependsOnPosition);
}

TEST_F(FunctionSamplerTest, IsFoundIfItChanges) {
  const auto sampler = make_sampler(on_gpu(), kFloatNoise, 1);
  sampler->check({3, 8, 8});
  sampler->probe();
  const auto honest = on_gpu_.call;
  DeviceArray<float> others(kBatch * kClasses);
  others.clear(nullptr);
  bool changed = false;
  on_gpu_.call = [&](float* images, const Sizes& sizes) -> const float* {
    const float* logits = honest(images, sizes);
    return changed ? others.data() : logits;
  };
  const auto changing = make_sampler(on_gpu(), kFloatNoise, 1);
  changing->check({3, 8, 8});
  changed = true;
  EXPECT_THROW(changing->probe(), ClassifierChanged);
}

// Probes evaluate the inputs of the check again, whatever the function did to its argument.
TEST_F(FunctionSamplerTest, MayWorkInPlace) {
  const auto honest = on_gpu_.call;
  on_gpu_.call = [=](float* images, const Sizes& sizes) -> const float* {
    const float* logits = honest(images, sizes);
    check_cuda(cudaMemsetAsync(images, 0, sizeof(float) * count_of(sizes), nullptr), "images");
    return logits;
  };
  const auto sampler = make_sampler(on_gpu(), kFloatNoise, 1);
  sampler->check({3, 8, 8});
  EXPECT_EQ(sampler->count(request_for(1000)),
            SerialSampler(f_, kFloatNoise).count(request_for(1000)));
  for (int i = 0; i < 3; ++i) sampler->probe();
}

TEST_F(FunctionSamplerTest, StopsWhenAsked) {
  const auto sampler = make_sampler(on_gpu(), kFloatNoise, 1, [this] { return calls_ >= 3; });
  EXPECT_THROW(sampler->count(request_for(10'000)), Interrupted);
  EXPECT_EQ(calls_, 3);
}

TEST_F(FunctionSamplerTest, RefusesALawThatIsNotDrawnThere) {
  EXPECT_EQ(
      refusal([&] { make_sampler(on_gpu(), kUniformNoise, 1); }),
      gpu_law_refusal(kUniformNoise) + "; " + on_gpu().description + " cannot count its votes");
}

}  // namespace
}  // namespace fedsmooth

#endif
