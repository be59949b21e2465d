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

// All of the same sizes; summed in double.
Array mean_of(const std::vector<Array>& arrays) {
  Array mean(arrays.front().sizes());
  for (int64_t i = 0; i < mean.count(); ++i) {
    double sum = 0;
    for (const Array& one : arrays) sum += one.floats()[i];
    mean.floats()[i] = static_cast<float>(sum / static_cast<double>(arrays.size()));
  }
  return mean;
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

BaseClassifier choose_groups(const std::string& device, const std::vector<EnsembleMember>& members,
                             [[maybe_unused]] const NoiseLaw& law) {
#ifdef FEDSMOOTH_CUDA
  std::vector<Model> folded;
  if (use_gpu(device, [&] { return fold_for_gpu(members, law, folded); })) {
    return group_gpu_classifier(folded);
  }
#else
  use_gpu(device, gpu_unavailable_reason);
#endif
  return group_classifier(all_on_cpu(members));
}

DifferentiableClassifier mean_with_gradients(std::vector<DifferentiableClassifier> members) {
  const auto all =
      std::make_shared<const std::vector<DifferentiableClassifier>>(std::move(members));
  const auto logits = [all](const Array& images) {
    std::vector<Array> each;
    for (const DifferentiableClassifier& f : *all) each.push_back(f.logits(images));
    return mean_of(each);
  };
  // d mean / d z_i = 1 / k for each of the k members' logits z_i: the images' gradient is the mean
  // of those that each member makes of the whole one.
  const auto backward = [all](const Array& gradient) {
    std::vector<Array> each;
    for (const DifferentiableClassifier& f : *all) each.push_back(f.backward(gradient));
    return mean_of(each);
  };
  return {logits, backward};
}

}  // namespace fedsmooth
