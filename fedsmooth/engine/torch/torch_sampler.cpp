// Base classifiers on the GPU of networks and modules that only LibTorch can run.
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/version.h>

#include "fedsmooth/engine/cuda/device_memory.h"
#include "fedsmooth/engine/cuda/function_sampler.h"
#include "fedsmooth/engine/torch/fused_forward.h"
#include "fedsmooth/engine/torch/steady_batch.h"
#include "fedsmooth/engine/torch/torch_engine.h"
#include "fedsmooth/engine/torch/torch_script.h"
#include "fedsmooth/model/fold.h"

namespace fedsmooth {
namespace {

// LibTorch's kernels and ours run one after another on LibTorch's default stream.
DeviceFunction device_function(const TensorFunction& f, int64_t classes) {
  const int gpu = current_gpu();
  const auto logits = std::make_shared<at::Tensor>();  // keeps the logits until the next call
  const auto call = [f, classes, gpu, logits](float* images, const Sizes& sizes) -> const float* {
    c10::NoGradGuard no_grad;
    const at::Device device(at::kCUDA, static_cast<at::DeviceIndex>(gpu));
    const at::Tensor batch = at::from_blob(images, sizes, at::device(device).dtype(at::kFloat));
    *logits = f(batch).to(device, at::kFloat).contiguous();
    if (logits->sizes() != at::IntArrayRef{sizes[0], classes}) {
      throw Error("model: gives an output of shape [{}], expected [{}, {}]",
                  fmt::join(logits->sizes(), ", "), sizes[0], classes);
    }
    return logits->data_ptr<float>();
  };
  return {call, gpu, /*stream=*/nullptr};
}

BaseClassifier classifier_for(const DeviceFunction& on_gpu, int64_t classes, int64_t batch,
                              const char* precision, const Shape& input) {
  return function_classifier(
      on_gpu, input, static_cast<int>(classes), static_cast<int>(batch),
      fmt::format("cuda/{}/libtorchx{}/{}/torch-{}", precision, batch, gpu_name(), TORCH_VERSION));
}

BaseClassifier choose_batch(const TensorFunction& f, int64_t classes, const char* precision,
                            const Shape& input) {
  // Algorithms that cuDNN chooses by their measured speed may differ from run to run.
  at::globalContext().setBenchmarkCuDNN(false);
  at::globalContext().setDeterministicCuDNN(true);
  const DeviceFunction on_gpu = device_function(f, classes);
  const auto make = [&](int64_t batch) {
    return classifier_for(on_gpu, classes, batch, precision, input);
  };
  return largest_steady_batch(make, {input.begin(), input.end()});
}

}  // namespace

BaseClassifier torch_gpu_classifier(const Model& trained) {
  // Folding changes the values that are rounded to bfloat16, so certificates are about the folded
  // network, which is the one that runs.
  const Model model = fold_batch_norm(trained);
  Tensors weights;
  for (const Array& w : model.weights) {
    const at::Tensor moved = as_tensor(w).to(at::kCUDA, at::kBFloat16);
    weights.push_back(w.axes() == 4 ? moved.contiguous(at::MemoryFormat::ChannelsLast) : moved);
  }
  const TensorFunction on_gpu = [network = model.network, weights](const at::Tensor& images) {
    const at::Tensor rounded = images.to(at::kBFloat16).contiguous(at::MemoryFormat::ChannelsLast);
    return fused_forward(network, weights, rounded).to(at::kFloat);
  };
  return choose_batch(on_gpu, output_shape(model.network)[0], "bf16", model.network.input);
}

BaseClassifier torch_script_gpu_classifier(const std::filesystem::path& path, int64_t classes,
                                           const Shape& input) {
  // Without this, products of float32 would be rounded to TF32.
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setAllowTF32CuBLAS(false);
  return choose_batch(load_torch_script(path, /*gpu=*/true), classes, "fp32", input);
}

}  // namespace fedsmooth
