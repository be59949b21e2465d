#include "fedsmooth/engine/samplers.h"

#include "fedsmooth/base/check.h"
#include "fedsmooth/engine/cpu/base_classifier.h"
#include "fedsmooth/engine/gpu.h"
#include "fedsmooth/engine/threaded_executor.h"
#include "fedsmooth/engine/threaded_sampler.h"
#include "fedsmooth/engine/torch/torch_engine.h"
#include "fedsmooth/model/fold.h"

#ifdef FEDSMOOTH_CUDA
#include "fedsmooth/engine/cuda/device_gradients.h"
#include "fedsmooth/engine/cuda/network_passes.h"
#endif

namespace fedsmooth {

BaseClassifier choose_classifier(const std::string& device, const Model& model,
                                 [[maybe_unused]] const NoiseLaw& law) {
  if (device == "cpu") return base_classifier(model);
#ifdef FEDSMOOTH_CUDA
  const std::string undrawn = gpu_law_refusal(law);
  if (!undrawn.empty()) {
    use_gpu(device, [&] { return undrawn; });
    return base_classifier(model);
  }
  const Model folded = fold_batch_norm(model);  // the fastest kernels know no batch norm
  const std::string missing = missing_for_engine(folded.network);
  if (missing.empty()) {
    select_gpu();
    return classifier_by(network_passes(folded, fastest_batch(folded)));
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
                                 const Shape& input, [[maybe_unused]] const NoiseLaw& law) {
  BaseClassifier on_cpu = torch_script_classifier(script, input);
#ifdef FEDSMOOTH_CUDA
  const auto missing = [&law] {
    for (const auto& reason :
         {gpu_law_refusal(law), gpu_unavailable_reason(), missing_for_torch_gpu()}) {
      if (!reason.empty()) return reason;
    }
    return std::string();
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

std::unique_ptr<Sampler> make_sampler(const BaseClassifier& f, const NoiseLaw& law, int threads,
                                      Stop stopped) {
  if (!f.sampler) return std::make_unique<ThreadedSampler>(f, law, threads, std::move(stopped));
  std::unique_ptr<Sampler> own = f.sampler(law, std::move(stopped));
  check(own && &own->law() == &law, "{} draws another noise than {}", f.description, law.name);
  return own;
}

}  // namespace fedsmooth
