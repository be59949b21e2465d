#include "fedsmooth/engine/ensembles.h"

#include <fmt/format.h>

#include "fedsmooth/base/error.h"
#include "fedsmooth/engine/gpu.h"
#include "fedsmooth/smoothing/group_classifier.h"
#include "fedsmooth/smoothing/mean_classifier.h"

#ifdef FEDSMOOTH_CUDA
#include "fedsmooth/engine/cuda/ensemble_sampler.h"
#include "fedsmooth/model/fold.h"
#endif

namespace fedsmooth {
namespace {

#ifdef FEDSMOOTH_CUDA
// Adds the members' networks with folded batch norms to `folded`. Returns what is missing for their
// votes under `law` to be counted on the GPU; empty if nothing is.
std::string fold_for_gpu(const std::vector<EnsembleMember>& members, const NoiseLaw& law,
                         std::vector<Model>& folded) {
  for (const std::string& reason : {gpu_unavailable_reason(), gpu_law_refusal(law)}) {
    if (!reason.empty()) return reason;
  }
  for (const EnsembleMember& member : members) {
    if (!member.model) {
      return fmt::format("{}: is a module, which CPU cores evaluate with other models",
                         member.name);
    }
    folded.push_back(fold_batch_norm(*member.model));
    const std::string missing = missing_for_engine(folded.back().network);
    if (!missing.empty()) return fmt::format("{}: {}", member.name, missing);
  }
  return {};
}
#endif

std::vector<BaseClassifier> all_on_cpu(const std::vector<EnsembleMember>& members) {
  std::vector<BaseClassifier> on_cpu;
  for (const EnsembleMember& member : members) on_cpu.push_back(member.on_cpu);
  return on_cpu;
}

}  // namespace

BaseClassifier choose_ensemble(const std::string& device,
                               const std::vector<EnsembleMember>& members,
                               [[maybe_unused]] const NoiseLaw& law) {
#ifdef FEDSMOOTH_CUDA
  std::vector<Model> folded;
  if (use_gpu(device, [&] { return fold_for_gpu(members, law, folded); })) {
    return ensemble_gpu_classifier(folded);
  }
#else
  use_gpu(device, gpu_unavailable_reason);
#endif
  return mean_classifier(all_on_cpu(members));
}

BaseClassifier choose_groups(const std::string& device,
                             const std::vector<EnsembleMember>& members) {
  if (device == "cuda") {
    throw Error("--device=cuda: the votes of several groups are counted by CPU cores; use cpu");
  }
  return group_classifier(all_on_cpu(members));
}

}  // namespace fedsmooth
