// What LibTorch does for the other rooms, without a header of its own. torch_script.cpp and
// torch_sampler.cpp implement it; without_torch.cpp stands in for them in a build without LibTorch,
// so that both builds compile every other file alike.
#pragma once

#include <filesystem>
#include <string>

#include "fedsmooth/model/model.h"
#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

/// What this build lacks for LibTorch to use a GPU; empty if nothing.
std::string missing_for_torch_gpu();

/// A network that only LibTorch can run on the GPU, in bfloat16, channels last. Only in builds with
/// CUDA, as the next one. Both choose their batch by largest_steady_batch().
BaseClassifier torch_gpu_classifier(const Model& model);

/// A module saved by torch.jit.save for images of shape `input`, in float32 on the GPU.
BaseClassifier torch_script_gpu_classifier(const std::filesystem::path& path, int64_t classes,
                                           const Shape& input);

/// The module on the CPU. One batch of images of shape `input` is evaluated to learn the number of
/// classes. A build without LibTorch refuses it and says how to get one, as the next one.
BaseClassifier torch_script_classifier(const std::filesystem::path& path, const Shape& input);

/// The module with gradients with respect to its images, on the CPU.
DifferentiableClassifier torch_script_gradients(const std::filesystem::path& path);

}  // namespace fedsmooth
