// Several models as one base classifier, where its votes are counted: f = argmax of the mean of
// their logits, or the class that most of them vote for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fedsmooth/model/model.h"
#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

struct EnsembleMember {
  std::string name;                    // of its file, for messages
  std::shared_ptr<const Model> model;  // null: a TorchScript module
  BaseClassifier on_cpu;
};

/// The mean of the members in the order of the list, for votes under `law`; see mean_classifier().
/// `device` is auto, cpu or cuda. Throws an Error if it is cuda and something is missing for that,
/// which names the member where it is one's fault.
BaseClassifier choose_ensemble(const std::string& device,
                               const std::vector<EnsembleMember>& members, const NoiseLaw& law);

/// The majority of the members, see group_classifier(). Its votes are counted by CPU cores: throws
/// an Error if `device` is cuda.
BaseClassifier choose_groups(const std::string& device, const std::vector<EnsembleMember>& members);

}  // namespace fedsmooth
