#include "fedsmooth/engine/samplers.h"

#include "fedsmooth/base/check.h"
#include "fedsmooth/engine/cpu/base_classifier.h"
#include "fedsmooth/engine/gpu.h"
#include "fedsmooth/engine/threaded_executor.h"
#include "fedsmooth/engine/threaded_sampler.h"
#include "fedsmooth/engine/torch/torch_engine.h"
#include "fedsmooth/model/fold.h"

#ifdef FEDSMOOTH_CUDA
#include "fedsmooth/engine/cuda/batched_plan.h"
#include "fedsmooth/engine/cuda/device_gradients.h"
#include "fedsmooth/engine/cuda/device_sampler.h"
#include "fedsmooth/engine/cuda/residual_plan.h"
#include "fedsmooth/engine/cuda/residual_sampler.h"
#endif

namespace fedsmooth {

BaseClassifier choose_classifier(const std::string& device, const Model& model,
                                 [[maybe_unused]] bool noise_bank) {
  if (device == "cpu") return base_classifier(model);
#ifdef FEDSMOOTH_CUDA
  const Model folded = fold_batch_norm(model);  // kernels for votes know no batch norm
  const std::string missing = missing_for_engine(folded.network);
  if (missing.empty()) {
    select_gpu();
    if (BatchedPlan::supports(folded.network)) {
      return noise_bank ? banked_gpu_classifier(folded) : gpu_classifier(folded);
    }
    const bool fast = has_residual_votes() && residual_refusal(folded.network).empty();
    return fast ? residual_gpu_classifier(folded) : row_gpu_classifier(folded);
  }
  const bool torch_can = gpu_unavailable_reason().empty() && missing_for_torch_gpu().empty();
  if (use_gpu(device, [&] { return torch_can ? "" : missing; })) return torch_gpu_classifier(model);
#else
  use_gpu(device, gpu_unavailable_reason);
#endif
  return base_classifier(model);
}

std::function<DifferentiableClassifier()> choose_gradients(
    [[maybe_unused]] const std::string& device, const Model& model) {
#ifdef FEDSMOOTH_CUDA
  if (device != "cpu") {
    const Model folded = fold_batch_norm(model);
    if (missing_for_engine(folded.network).empty()) {
      select_gpu();
      return [make = device_gradients(folded)] {
        select_gpu();
        return make();
      };
    }
  }
#endif
  return [model]() -> DifferentiableClassifier {
    const std::shared_ptr<Passes> passes = fastest_passes(model.network);
    passes->load(model.weights);
    return {[passes](const Array& x) { return passes->forward(x, std::nullopt); },
            [passes](const Array& gradient) { return passes->backward_to_images(gradient); }};
  };
}

BaseClassifier choose_classifier(const std::string& device, const std::filesystem::path& script,
                                 const Shape& input) {
  BaseClassifier on_cpu = torch_script_classifier(script, input);
#ifdef FEDSMOOTH_CUDA
  const auto missing = [] {
    const std::string gpu = gpu_unavailable_reason();
    return gpu.empty() ? missing_for_torch_gpu() : gpu;
  };
  if (use_gpu(device, missing)) return torch_script_gpu_classifier(script, on_cpu.classes, input);
#else
  use_gpu(device, gpu_unavailable_reason);
#endif
  return on_cpu;
}

DifferentiableClassifier script_gradients(const std::filesystem::path& script) {
  return torch_script_gradients(script);
}

std::unique_ptr<Sampler> make_sampler(const BaseClassifier& f, int threads, Stop stopped) {
  if (f.sampler) {
    std::unique_ptr<Sampler> own = f.sampler(std::move(stopped));
    check(own && own->noise_kind() == f.noise_kind, "{} draws another noise", f.description);
    return own;
  }
  return std::make_unique<ThreadedSampler>(f, threads, std::move(stopped));
}

}  // namespace fedsmooth
