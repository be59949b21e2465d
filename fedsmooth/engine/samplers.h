// Which base classifier is certified, and what counts its votes: the GPU's where there is one and
// it knows the network's layers, else the CPU's.
#pragma once

#include <memory>
#include <string>

#include "fedsmooth/model/model.h"
#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

/// `device` is auto, cpu or cuda. An Error if it is cuda and something is missing for that.
BaseClassifier choose_classifier(const std::string& device, const Model& model);

/// The classifier's own sampler, or one on `threads` cores. `cancelled` is asked before each batch;
/// the sampler throws Cancelled if it says so.
std::unique_ptr<Sampler> make_sampler(const BaseClassifier& f, int threads,
                                      std::function<bool()> cancelled = {});

}  // namespace fedsmooth
