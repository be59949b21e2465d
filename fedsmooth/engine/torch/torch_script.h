// TorchScript modules as classifiers.
#pragma once

#include <filesystem>

#include "fedsmooth/engine/torch/tensors.h"
#include "fedsmooth/model/network.h"
#include "fedsmooth/smoothing/sampler.h"

namespace fedsmooth {

/// A module saved by torch.jit.save, in evaluation mode, as a function of tensors on the CPU or the
/// GPU. An Error names what is wrong with the file.
TensorFunction load_torch_script(const std::filesystem::path& path, bool gpu);

/// On the CPU. One batch of images of shape `input` is evaluated to learn the number of classes.
BaseClassifier torch_script_classifier(const std::filesystem::path& path, const Shape& input);

/// The same module with gradients with respect to its images.
DifferentiableClassifier torch_script_gradients(const std::filesystem::path& path);

}  // namespace fedsmooth
