#ifdef FEDSMOOTH_CUDA

#include "fedsmooth/engine/cuda/device_gradients.h"

#include <gtest/gtest.h>

#include "fedsmooth/engine/reference/reference_passes.h"
#include "fedsmooth/model/fold.h"
#include "tests/engine/cuda/gpu.h"
#include "tests/engine/cuda/residual_networks.h"

namespace fedsmooth {
namespace {

using DeviceGradientsTest = GpuTest;

Model model_called(const std::string& name) {
  if (name.starts_with("resnet")) return residual_model(name, /*statistics=*/true);
  const Network network = residual_network(name);
  return {network, initial_weights(network, Key{1}), 0.25, {}};
}

double relative(const Array& a, const Array& b) {
  double off = 0, size = 0;
  for (int64_t i = 0; i < b.count(); ++i) {
    const double apart = static_cast<double>(a.floats()[i]) - b.floats()[i];
    off += apart * apart;
    size += static_cast<double>(b.floats()[i]) * b.floats()[i];
  }
  return std::sqrt(off / size);
}

// In float32 sums differ by their order. bfloat16 rounds every map by up to 2^-9, which changes
// logits by some thousandths. Of the ReLUs and maxima some are decided otherwise: a share s of them
// moves a gradient by about sqrt(s) of its length. 0.10 to 0.19 was measured, 0.33 with group norms
// in depth; there one ReLU of some 200,000 was decided otherwise in float32 too, and moved it by
// 1e-3.
TEST_F(DeviceGradientsTest, AreThoseOfTheReference) {
  for (const std::string name :
       {"small", "alexnet", "resnet8", "resnet8-a", "resnet8-gn", "resnet20", "resnet20-gn"}) {
    const Model model = model_called(name);
    const auto passes = reference_passes(model.network);
    passes->load(model.weights);
    for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
      const bool half = precision == Precision::kBfloat16, deep = name == "resnet20-gn";
      const DifferentiableClassifier f = device_gradients(fold_batch_norm(model), precision)();
      for (const int64_t images : {3, 1, 7}) {  // less than there is room for, and more
        const Array x = uniform({images, 3, 32, 32}, 4 + images);
        const Array expected = passes->forward(x, std::nullopt), found = f.logits(x);
        EXPECT_LT(relative(found, expected), half ? 1e-2 : 1e-5) << name << ", " << images;
        const Array factors = each(uniform(expected.sizes(), 9), [](float v) { return v - 0.5f; });
        const Array gradient = passes->backward_to_images(factors), on_gpu = f.backward(factors);
        EXPECT_LT(relative(on_gpu, gradient), half ? (deep ? 0.4 : 0.3) : (deep ? 3e-3 : 1e-4))
            << name << ", " << images;
      }
    }
  }
}

}  // namespace
}  // namespace fedsmooth

#else
#include <gtest/gtest.h>

TEST(DeviceGradientsTest, NeedsNvcc) { GTEST_SKIP() << "built without nvcc"; }
#endif
