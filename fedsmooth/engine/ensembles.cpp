#include "fedsmooth/engine/ensembles.h"

#include "fedsmooth/engine/gpu.h"
#include "fedsmooth/smoothing/mean_classifier.h"

namespace fedsmooth {

BaseClassifier choose_ensemble(const std::string& device,
                               const std::vector<EnsembleMember>& members,
                               [[maybe_unused]] const NoiseLaw& law) {
  use_gpu(device, [] {
    const std::string missing = gpu_unavailable_reason();
    return missing.empty() ? "several models as one are evaluated by CPU cores" : missing;
  });
  std::vector<BaseClassifier> on_cpu;
  for (const EnsembleMember& member : members) on_cpu.push_back(member.on_cpu);
  return mean_classifier(on_cpu);
}

}  // namespace fedsmooth
