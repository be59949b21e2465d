// Several models as one base classifier: f = argmax of the mean of their logits, or the class that
// most of them vote for. Where the votes of either are counted, and the gradients of the former.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fedsmooth/model/model.h"
#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

struct EnsembleMember {
  std::string name;                    // name of its file, for messages
  std::shared_ptr<const Model> model;  // null: a TorchScript module
  BaseClassifier on_cpu;
};

/// Returns the mean of the members, added in the order of the list, for votes under `law`; see
/// mean_classifier(). `device` is auto, cpu or cuda. Throws an Error if it is cuda and the build,
/// the machine or a member does not allow that; it names the member.
BaseClassifier choose_ensemble(const std::string& device,
                               const std::vector<EnsembleMember>& members, const NoiseLaw& law);

/// Returns the majority of the members, see group_classifier(), in the same way.
BaseClassifier choose_groups(const std::string& device, const std::vector<EnsembleMember>& members,
                             const NoiseLaw& law);

/// Returns the mean of the members' logits with its gradients. Each member serves the same thread.
DifferentiableClassifier mean_with_gradients(std::vector<DifferentiableClassifier> members);

}  // namespace fedsmooth
