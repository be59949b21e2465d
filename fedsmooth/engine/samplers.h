// Which base classifier is certified, and what counts its votes: the GPU's where there is one and
// it knows the network's layers, else the CPU's.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "fedsmooth/model/model.h"
#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

/// The model, for votes under `law`. `device` is auto, cpu or cuda. An Error if it is cuda and
/// something is missing for that.
BaseClassifier choose_classifier(const std::string& device, const Model& model,
                                 const NoiseLaw& law);

/// A TorchScript module that takes images of shape `input`, for votes under `law`. A build that
/// runs none says how to get one that does.
BaseClassifier choose_classifier(const std::string& device, const std::filesystem::path& script,
                                 const Shape& input, const NoiseLaw& law);

/// The model with gradients, where its votes are counted; each call makes one for a thread.
std::function<DifferentiableClassifier()> choose_gradients(const std::string& device,
                                                           const Model& model);

/// The module's gradients with respect to images, on the CPU.
DifferentiableClassifier script_gradients(const std::filesystem::path& script);

/// Makes what counts votes of f under `law`: the engine's own sampler, or one on `threads` cores.
/// An Error that names the law if it cannot be drawn there. `stopped` is asked before each batch;
/// the sampler throws Interrupted if it says so.
std::unique_ptr<Sampler> make_sampler(const BaseClassifier& f, const NoiseLaw& law, int threads,
                                      Stop stopped = {});

}  // namespace fedsmooth
