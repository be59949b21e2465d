// Which base classifier is certified, and what counts its votes: the GPU's where there is one and
// it knows the network's layers, else the CPU's.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "fedsmooth/model/model.h"
#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

/// `device` is auto, cpu or cuda. An Error if it is cuda and something is missing for that.
/// With `noise_bank` its sampler may be one that is fast if all images share their draws, and only
/// then.
BaseClassifier choose_classifier(const std::string& device, const Model& model,
                                 bool noise_bank = false);

/// The same for a TorchScript module that takes images of shape `input`. A build that runs none
/// says how to get one that does.
BaseClassifier choose_classifier(const std::string& device, const std::filesystem::path& script,
                                 const Shape& input);

/// The model with gradients, where its votes are counted; each call makes one for a thread.
std::function<DifferentiableClassifier()> choose_gradients(const std::string& device,
                                                           const Model& model);

/// The module's gradients with respect to images, on the CPU.
DifferentiableClassifier script_gradients(const std::filesystem::path& script);

/// The classifier's own sampler, or one on `threads` cores. `stopped` is asked before each batch;
/// the sampler throws Interrupted if it says so.
std::unique_ptr<Sampler> make_sampler(const BaseClassifier& f, int threads, Stop stopped = {});

}  // namespace fedsmooth
