#include "fedsmooth/engine/samplers.h"

#include "fedsmooth/base/check.h"
#include "fedsmooth/engine/cpu/base_classifier.h"
#include "fedsmooth/engine/gpu.h"
#include "fedsmooth/engine/threaded_sampler.h"
#include "fedsmooth/model/fold.h"

#ifdef FEDSMOOTH_CUDA
#include "fedsmooth/engine/cuda/device_sampler.h"
#include "fedsmooth/engine/cuda/residual_plan.h"
#include "fedsmooth/engine/cuda/residual_sampler.h"
#endif
#ifdef FEDSMOOTH_TORCH
#include "fedsmooth/engine/torch/torch_script.h"
#endif
#if defined(FEDSMOOTH_CUDA) && defined(FEDSMOOTH_TORCH)
#include "fedsmooth/engine/torch/torch_sampler.h"
#endif

namespace fedsmooth {

BaseClassifier choose_classifier(const std::string& device, const Model& model,
                                 [[maybe_unused]] bool noise_bank) {
  if (device == "cpu") return base_classifier(model);
#ifdef FEDSMOOTH_CUDA
  const Model folded = fold_batch_norm(model);  // the engine knows no batch norm
  if (missing_for_votes(folded.network).empty()) {
    select_gpu();
    if (residual_refusal(folded.network).empty()) return residual_gpu_classifier(folded);
    return noise_bank ? banked_gpu_classifier(folded) : gpu_classifier(folded);
  }
#ifdef FEDSMOOTH_TORCH
  if (use_gpu(device, missing_for_torch_gpu)) return torch_gpu_classifier(model);
#else
  use_gpu(device, [&] { return missing_for_votes(folded.network); });
#endif
#else
  use_gpu(device, missing_gpu);
#endif
  return base_classifier(model);
}

#ifdef FEDSMOOTH_TORCH
BaseClassifier choose_classifier(const std::string& device, const std::filesystem::path& script,
                                 const Shape& input) {
  BaseClassifier on_cpu = torch_script_classifier(script, input);
#ifdef FEDSMOOTH_CUDA
  if (use_gpu(device, missing_for_torch_gpu)) {
    return torch_gpu_classifier(load_torch_script(script, /*gpu=*/true), on_cpu.classes, input);
  }
#else
  use_gpu(device, missing_gpu);
#endif
  return on_cpu;
}

DifferentiableClassifier script_gradients(const std::filesystem::path& script) {
  return torch_script_gradients(script);
}
#else
namespace {

[[noreturn]] void refuse_script(const std::filesystem::path& script) {
  throw Error(
      "{}: TorchScript needs LibTorch, which this build lacks; build with "
      "`make TORCH=debian`, or save the weights as .safetensors",
      script.string());
}

}  // namespace

BaseClassifier choose_classifier(const std::string&, const std::filesystem::path& script,
                                 const Shape&) {
  refuse_script(script);
}

DifferentiableClassifier script_gradients(const std::filesystem::path& script) {
  refuse_script(script);
}
#endif

std::unique_ptr<Sampler> make_sampler(const BaseClassifier& f, int threads,
                                      std::function<bool()> cancelled) {
  if (f.sampler) {
    std::unique_ptr<Sampler> own = f.sampler(std::move(cancelled));
    check(own && own->noise_kind() == f.noise_kind, "{} draws another noise", f.description);
    return own;
  }
  return std::make_unique<ThreadedSampler>(f, threads, std::move(cancelled));
}

}  // namespace fedsmooth
