#if defined(FEDSMOOTH_CUDA) && defined(FEDSMOOTH_TORCH)

#include <gtest/gtest.h>

#include "fedsmooth/engine/gpu.h"
#include "fedsmooth/engine/torch/torch_engine.h"
#include "tests/engine/networks.h"

namespace fedsmooth {
namespace {

TEST(TorchSamplerTest, CountsWhatItsClassifierSays) {
  if (!gpu_unavailable_reason().empty()) GTEST_SKIP() << gpu_unavailable_reason();
  if (!missing_for_torch_gpu().empty()) GTEST_SKIP() << "LibTorch was not built for CUDA";
  const Network network = named_network("resnet20");
  Weights weights = initial_weights(network, Key{1});
  // Large enough that noise changes the answer.
  for (Array& w : weights) w = each(w, [](float v) { return 1.5f * v; });
  const BaseClassifier f = torch_gpu_classifier(Model{network, weights, 0.5, {}});
  check_is_function(f, {3, 32, 32});
  SerialSampler serial(f, kFloatNoise);
  const VoteRequest request{
      uniform({3, 32, 32}, 1), 0.5, 5000, {make_key(1, Purpose::kEstimation), 7}};
  EXPECT_EQ(f.sampler(kFloatNoise, {})->count(request), serial.count(request));
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(TorchSamplerTest, NeedsNvccAndLibTorch) { GTEST_SKIP() << "built without one of them"; }
#endif
