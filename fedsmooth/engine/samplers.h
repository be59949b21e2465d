// Chooses the base classifier that is certified and the sampler that counts its votes: on the GPU
// if there is one and its engine knows the network's layers, else on CPU cores.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "fedsmooth/model/model.h"
#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

/// Returns the model as a base classifier for votes under `law`; it shares the model's weights.
/// `device` is auto, cpu or cuda. Throws an Error if it is cuda and the build, the machine or the
/// network does not allow that.
BaseClassifier choose_classifier(const std::string& device, const Model& model,
                                 const NoiseLaw& law);

/// Returns a TorchScript module that takes images of shape `input` as a base classifier for votes
/// under `law`. A build without LibTorch throws an Error that says how to get one.
BaseClassifier choose_classifier(const std::string& device, const std::filesystem::path& script,
                                 const Shape& input, const NoiseLaw& law);

/// Returns a function that makes the model with gradients, on the device where its votes are
/// counted. Call it once per thread.
std::function<DifferentiableClassifier()> choose_gradients(const std::string& device,
                                                           const Model& model);

/// Returns a TorchScript module with gradients with respect to images, on the CPU.
DifferentiableClassifier script_gradients(const std::filesystem::path& script);

/// Makes a sampler of f under `law`: the engine's own, or one on `threads` cores, at least 1. `law`
/// must outlive the sampler. Throws an Error that names the law if it cannot be drawn there.
/// `stopped` is called before each batch; if it returns true, the sampler throws Interrupted.
std::unique_ptr<Sampler> make_sampler(const BaseClassifier& f, const NoiseLaw& law, int threads,
                                      Stop stopped = {});

}  // namespace fedsmooth
