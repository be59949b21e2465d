#include "fedsmooth/engine/samplers.h"

#include <c10/util/Exception.h>

#include "fedsmooth/engine/cpu/base_classifier.h"
#include "fedsmooth/engine/gpu.h"
#include "fedsmooth/engine/threaded_sampler.h"

#ifdef FEDSMOOTH_CUDA
#include "fedsmooth/engine/cuda/device_sampler.h"
#include "fedsmooth/engine/torch/torch_sampler.h"
#include "fedsmooth/engine/torch/torch_script.h"
#include "fedsmooth/model/fold.h"
#endif

namespace fedsmooth {

#ifdef FEDSMOOTH_CUDA
BaseClassifier choose_classifier(const std::string& device, const Model& model, bool noise_bank) {
  const Model folded = fold_batch_norm(model);  // the engine knows no batch norm
  if (device != "cpu" && missing_for_engine(folded.network).empty()) {
    select_gpu();
    return noise_bank ? banked_gpu_classifier(folded) : gpu_classifier(folded);
  }
  if (use_gpu(device, missing_for_torch_gpu)) {
    return torch_gpu_classifier(model);
  }
  return base_classifier(model);
}

BaseClassifier choose_classifier(const std::string& device, const std::filesystem::path& script,
                                 const Shape& input) {
  const BaseClassifier on_cpu = base_classifier(script, input);
  if (use_gpu(device, missing_for_torch_gpu)) {
    return torch_gpu_classifier(load_torch_script(script, /*gpu=*/true), on_cpu.classes, input);
  }
  return on_cpu;
}
#else
BaseClassifier choose_classifier(const std::string& device, const Model& model, bool) {
  use_gpu(device, missing_gpu);
  return base_classifier(model);
}

BaseClassifier choose_classifier(const std::string& device, const std::filesystem::path& script,
                                 const Shape& input) {
  use_gpu(device, missing_gpu);
  return base_classifier(script, input);
}
#endif

std::unique_ptr<Sampler> make_sampler(const BaseClassifier& f, int threads,
                                      std::function<bool()> cancelled) {
  if (f.sampler) {
    TORCH_CHECK(f.noise_kind == NoiseKind::kFloat, f.description, " cannot draw exact noise");
    return f.sampler(std::move(cancelled));
  }
  return std::make_unique<ThreadedSampler>(f, threads, std::move(cancelled));
}

}  // namespace fedsmooth
