// The classifiers that LibTorch evaluates, declared without a header of LibTorch. torch_script.cpp
// and torch_sampler.cpp implement them; a build without LibTorch has without_torch.cpp instead, so
// that both builds compile every other file alike.
#pragma once

#include <filesystem>
#include <string>

#include "fedsmooth/model/model.h"
#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

/// Returns what this build lacks for LibTorch to use a GPU; empty if it lacks nothing.
std::string missing_for_torch_gpu();

/// Returns a network as a base classifier on the current GPU, in bfloat16, channels last, for
/// networks that only LibTorch can run there. Its batch is chosen by largest_steady_batch(). Builds
/// without CUDA do not have it; it is a Bug in builds without LibTorch.
BaseClassifier torch_gpu_classifier(const Model& model);

/// Returns a module, saved by torch.jit.save, for images of shape `input` as a base classifier on
/// the current GPU, in float32. Its batch is chosen by largest_steady_batch(). Builds without CUDA
/// do not have it; builds without LibTorch throw an Error that says how to get one.
BaseClassifier torch_script_gpu_classifier(const std::filesystem::path& path, int64_t classes,
                                           const Shape& input);

/// Returns a module, saved by torch.jit.save, as a base classifier on the CPU. It evaluates one
/// batch of images of shape `input` to learn the number of classes. Builds without LibTorch throw
/// an Error that says how to get one.
BaseClassifier torch_script_classifier(const std::filesystem::path& path, const Shape& input);

/// Returns a module, saved by torch.jit.save, with gradients with respect to its images, on the
/// CPU. Only one thread at a time may use it. Builds without LibTorch throw an Error that says how
/// to get one.
DifferentiableClassifier torch_script_gradients(const std::filesystem::path& path);

}  // namespace fedsmooth
