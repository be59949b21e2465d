// TorchScript modules as functions of tensors; torch_engine.h makes classifiers of them.
#pragma once

#include <filesystem>

#include "fedsmooth/engine/torch/tensors.h"

namespace fedsmooth {

/// Loads a module, saved by torch.jit.save in evaluation mode, as a function of tensors on the CPU
/// or the GPU. Each thread needs a copy of the function; copies share the module. Throws an Error
/// that names the file if it is no module or in training mode; a call throws one if the module
/// fails.
TensorFunction load_torch_script(const std::filesystem::path& path, bool gpu);

}  // namespace fedsmooth
