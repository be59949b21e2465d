#include "fedsmooth/engine/samplers.h"

#include "fedsmooth/base/error.h"
#include "fedsmooth/engine/base_classifier.h"
#include "fedsmooth/engine/gpu.h"
#include "fedsmooth/engine/threaded_sampler.h"

#ifdef FEDSMOOTH_CUDA
#include "fedsmooth/engine/device_sampler.h"
#endif

namespace fedsmooth {

BaseClassifier choose_classifier(const std::string& device, const Model& model) {
  if (use_gpu(device, model.network)) {
#ifdef FEDSMOOTH_CUDA
    return gpu_classifier(model);
#endif
  }
  return base_classifier(model);
}

std::unique_ptr<Sampler> make_sampler(const BaseClassifier& f, int threads,
                                      std::function<bool()> cancelled) {
  if (f.sampler) return f.sampler(std::move(cancelled));
  return std::make_unique<ThreadedSampler>(f, threads, std::move(cancelled));
}

}  // namespace fedsmooth
